// Copies the version of package.json to all other places; `npm version minor` runs it before the commit.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const IMAGE = /(?<=image: public-user-api:)[\d.]+/g;
const WHEEL = /(?<=public_user_api_client-)[\d.]+(?=-py3)/g;

/** Files that repeat the version, and the place in each. */
const STATEMENTS = {
  'docker-compose.yml': IMAGE,
  'deploy/compose/docker-compose.yml': IMAGE,
  'deploy/kubernetes/kustomization.yml': /(?<=newTag: ')[\d.]+/g,
  'clients/typescript/package.json': /(?<="version": ")[\d.]+/g,
  'clients/python/pyproject.toml': /(?<=^version = ")[\d.]+/gm,
  'clients/go/README.md': /(?<=`v)[\d.]+(?=-h)/g,
  'clients/python/README.md': WHEEL,
  'docs/developers/first-program.md': WHEEL,
};

/** Every copy of the version: the file and its value. */
export const statements = () =>
  Object.entries(STATEMENTS).flatMap(([file, pattern]) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(pattern)].map(([version]) => ({ file, version })),
  );

if (process.argv[1] === import.meta.filename) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const [file, pattern] of Object.entries(STATEMENTS))
    writeFileSync(join(root, file), readFileSync(join(root, file), 'utf8').replace(pattern, version));
}
