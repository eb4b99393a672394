/** Mistakes after which nothing that anybody was promised is different: not counted, but named with the reason in each run. */
export const EQUIVALENTS = [
  {
    path: 'src/authorization-server/requests/token-request.ts',
    code: "WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '${REPEAT_SECONDS} s'",
    by: '<=',
    because: 'a response is deleted a microsecond earlier, at a moment that nobody can choose',
  },
  {
    path: 'src/auth/rate-limits/count-stores.ts',
    code: 'const redis = new Redis(url, { ...bounds, lazyConnect: true });',
    by: 'false',
    because: 'connects when the server starts instead of with the first exchange',
  },
];
