// The clients' packages, which the server offers below /clients, in the formats of `npm pack`, `pip wheel` and a Go proxy. Built without
// those programs: a build needs only Node.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { tgz, zip } from './archives.mjs';

const CLIENTS = join(import.meta.dirname, '../clients');
const read = (path) => readFileSync(join(CLIENTS, path), 'utf8');
const filesIn = (folder, pattern) =>
  readdirSync(join(CLIENTS, folder))
    .filter((name) => pattern.test(name))
    .sort();

const ABOUT = ['LICENSE', 'README.md'];
const TYPESCRIPT = () => [
  ...ABOUT,
  'package.json',
  ...filesIn('typescript/src', /\.ts$/).map((name) => `src/${name}`),
];
const PYTHON = () => filesIn('python/src/public_user_api', /^(?:.*\.py|py\.typed)$/);
const GO = () => [...ABOUT, 'go.mod', ...filesIn('go', /(?<!_test)\.go$/)];

/** Paths in the repository of all files that packages contain. */
export const packageSources = () =>
  [
    ...[...TYPESCRIPT(), 'build.mjs', 'tsconfig.json'].map((path) => `typescript/${path}`),
    ...[...ABOUT, 'pyproject.toml'].map((path) => `python/${path}`),
    ...PYTHON().map((name) => `python/src/public_user_api/${name}`),
    ...GO().map((path) => `go/${path}`),
  ]
    .map((path) => `clients/${path}`)
    .concat('bin/packages.mjs', 'bin/archives.mjs');

/** @returns {Promise<Map<string, Buffer>>} path below /clients → archive */
export async function clientPackages() {
  const { version } = JSON.parse(read('typescript/package.json'));
  return new Map([['typescript.tgz', await npmPackage()], wheel(), ...goModule(version)]);
}

async function npmPackage() {
  const { built } = await import('../clients/typescript/build.mjs');
  const dist = [...built()].map(([path, text]) => [`dist/${path}`, text]);
  const files = [...TYPESCRIPT().map((path) => [path, read(`typescript/${path}`)]), ...dist];
  return tgz(files.map(([path, text]) => [`package/${path}`, text]));
}

/** The binary distribution format 1.0, with core metadata 2.4. */
function wheel() {
  const project = read('python/pyproject.toml');
  /** Values that are the same in TOML and JSON. */
  const value = (key) => {
    const [, text] = new RegExp(`^${key} = ("[^\\n]*"|\\[[^\\]]*\\])$`, 'm').exec(project);
    return JSON.parse(text.replace(/,\s*\]/, ']'));
  };
  const [, author] = /^authors = \[\{ name = "(.*)" \}\]$/m.exec(project);
  const stem = `${value('name').replaceAll('-', '_')}-${value('version')}`;
  const metadata = [
    'Metadata-Version: 2.4',
    `Name: ${value('name')}`,
    `Version: ${value('version')}`,
    `Summary: ${value('description')}`,
    `Author: ${author}`,
    `License-Expression: ${value('license')}`,
    'License-File: LICENSE',
    `Keywords: ${value('keywords')}`,
    ...value('classifiers').map((classifier) => `Classifier: ${classifier}`),
    `Requires-Python: ${value('requires-python')}`,
    ...value('dependencies').map((requirement) => `Requires-Dist: ${requirement}`),
    'Description-Content-Type: text/markdown',
    '',
    read('python/README.md'),
  ].join('\n');
  const info = `${stem}.dist-info`;
  const files = [
    ...PYTHON().map((name) => [`public_user_api/${name}`, read(`python/src/public_user_api/${name}`)]),
    [`${info}/METADATA`, metadata],
    [
      `${info}/WHEEL`,
      'Wheel-Version: 1.0\nGenerator: public-user-api\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    ],
    [`${info}/licenses/LICENSE`, read('python/LICENSE')],
  ];
  const record = files.map(
    ([path, text]) => `${path},sha256=${digest(text, 'base64url')},${Buffer.byteLength(text)}`,
  );
  files.push([`${info}/RECORD`, `${[...record, `${info}/RECORD,,`].join('\n')}\n`]);
  return [`${stem}-py3-none-any.whl`, zip(files)];
}

/** A Go proxy's responses for the module. The version depends on the content: Go always rejects other content for a known version. */
function goModule(release) {
  const [, module] = /^module (\S+)$/m.exec(read('go/go.mod'));
  const files = GO().map((path) => [path, read(`go/${path}`)]);
  const version = `v${release}-h${digest(JSON.stringify(files), 'hex').slice(0, 12)}`;
  const folder = `go/${module}/@v`;
  return [
    [`${folder}/list`, Buffer.from(`${version}\n`)],
    [`${folder}/${version}.info`, Buffer.from(JSON.stringify({ Version: version }))],
    [`${folder}/${version}.mod`, Buffer.from(read('go/go.mod'))],
    [`${folder}/${version}.zip`, zip(files.map(([path, text]) => [`${module}@${version}/${path}`, text]))],
  ];
}

const digest = (text, encoding) => createHash('sha256').update(text).digest(encoding);
