/** Unused files of packages (130 MB), which `prepare` removes. */
export const UNUSED = [
  'node_modules/node/node_modules/node-*/include', // for compiling native add-ons, which this project lacks
  'node_modules/typeorm/browser',
  'node_modules/**/*.{js,cjs,mjs,ts,cts,mts}.map',
];
