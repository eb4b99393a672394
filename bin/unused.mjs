/** What packages bring that nothing here reads, 130 MB of it: `prepare` removes it. */
export const UNUSED = [
  'node_modules/node/node_modules/node-*/include', // for native add-ons, which nobody compiles here
  'node_modules/typeorm/browser',
  'node_modules/**/*.{js,cjs,mjs,ts,cts,mts}.map',
];
