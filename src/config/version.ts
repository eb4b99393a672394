import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** package.json is next to `dist/`, which contains the compiled modules. */
const ABOUT = readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8');

/** Version of the program and of its API (Semantic Versioning 2.0.0). `bin/version.mjs` copies it into other files. */
export const VERSION = (JSON.parse(ABOUT) as { readonly version: string }).version;

/** Identifies this server in its requests to other servers. */
export const USER_AGENT = 'public-user-api';
