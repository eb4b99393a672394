/** Mistakes after which nothing that anybody was promised is different: not counted, but named with the reason in each run. */
export const EQUIVALENTS = [
  {
    path: 'src/auth/rate-limits/count-stores.ts',
    code: 'const redis = new Redis(url, { ...bounds, lazyConnect: true });',
    by: 'false',
    because: 'connects when the server starts instead of with the first exchange',
  },
];
