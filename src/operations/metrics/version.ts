import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** package.json, which is above `dist/src/`. */
const ABOUT = readFileSync(join(import.meta.dirname, '../../../../package.json'), 'utf8');

export const VERSION = (JSON.parse(ABOUT) as { readonly version: string }).version;
