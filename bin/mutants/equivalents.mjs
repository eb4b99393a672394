/** Mistakes after which nothing that anybody was promised is different: not counted, but named with the reason in each run. */
export const EQUIVALENTS = [];
