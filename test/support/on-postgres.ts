import { describe, it } from '@jest/globals';

/** Whether the tests run over a real PostgreSQL (`npm run test:pg`); else over the embedded database. */
export const onPostgres = process.env.TEST_DATABASE_URL !== undefined;

const where = (here: boolean) => ({ describe: here ? describe : describe.skip, it: here ? it : it.skip });

/**
 * `postgres.describe` and `postgres.it`: what the embedded database has not (a second session, locks, notices), or what needs a
 * browser, Redis or many processes, which are not there wherever Node is. A run without them says how many it left out.
 */
export const postgres = where(onPostgres);

/** `embedded.it`: what is so on the embedded database alone. */
export const embedded = where(!onPostgres);
