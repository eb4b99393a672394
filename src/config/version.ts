import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** package.json, which is above `dist/src/`. */
const ABOUT = readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8');

/** The program's version, by Semantic Versioning 2.0.0: also that of the API that it serves. `bin/version.mjs` writes it elsewhere. */
export const VERSION = (JSON.parse(ABOUT) as { readonly version: string }).version;

/** Names this server to the servers that it calls. */
export const USER_AGENT = 'public-user-api';
