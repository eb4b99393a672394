// `npm run docs`: writes what is made from the code: pages of docs/, and what the server shows of them. With --print it says what it
// would write, as JSON: a test compares that.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { build } from './build.mjs';
import { recordExamples } from './examples.mjs';
import { renderGuides } from './guides.mjs';

const root = join(import.meta.dirname, '..');
/** As `npm run format` has it. */
const JSON_STYLE = { parser: 'json', printWidth: 110 };
const cell = (text) => text.replaceAll('|', '\\|');

/** Path → text of every generated page. */
export async function pages() {
  await build();
  const { SETTINGS } = await import('../dist/src/config/settings.js');
  const { PROBLEMS } = await import('../dist/src/http/output/problems.js');
  const { METRICS } = await import('../dist/src/http/metrics.js');
  const { createProgram } = await import('../dist/src/cli/program.js');
  const { exampleOf } = await import('../dist/src/cli/command.js');
  const { asTyped } = await import('../dist/src/cli/output.js');
  const { AUTH_EVENTS } = await import('../dist/src/audit/audit.js');
  const { REFUSAL_REASONS } = await import('../dist/src/oauth/provider/refusal-reasons.js');
  const { RECORD_TYPES } = await import('../dist/src/operations/import/record-types.js');
  const errors = [
    '# Error codes',
    '<!-- Made by `npm run docs` from `src/http/output/problems.ts`. -->',
    '',
    'Every error is `application/problem+json` (RFC 9457). Its `code` is one of these, and its `type` is the address at which the running',
    'server says the same: `GET /api/public/problems/{code}`.',
    '',
    '| Status | Code | Meaning | What to do |',
    '| --- | --- | --- | --- |',
    ...[...PROBLEMS.values()].map(
      ({ status, code, meaning, fix }) => `| ${status} | \`${code}\` | ${cell(meaning)} | ${cell(fix)} |`,
    ),
  ].join('\n');
  const settings = [
    '# Settings',
    'Made by `npm run docs` from `src/config/settings.ts`. Settings are environment variables, or lines of a file `.env` in the',
    'working folder; what the environment holds goes first. Every one has a development default. All that are wrong are named at',
    'start, at once, and never shown. In production `SECRET_KEY` and `DATABASE_URL` are required.',
    '',
    '| Name | Default | Meaning |',
    '| --- | --- | --- |',
    ...Object.entries(SETTINGS).map(
      ([name, { default: value, meaning }]) => `| \`${name}\` | ${cell(value)} | ${cell(meaning)} |`,
    ),
  ].join('\n');
  const metrics = [
    '# Metrics',
    'Made by `npm run docs` from `src/http/metrics.ts`. Where `METRICS_PORT` is set, `GET /metrics` on that port answers in the format of',
    'Prometheus; beside these there are those of Node and the process (`nodejs_…`, `process_…`), as prom-client names them. No label',
    'holds an id, or anything that a caller sent. With `WORKERS` there is one answer for all processes: counters and histograms are',
    'added up, gauges as the table says.',
    '',
    '| Metric | Type | Labels | Of several processes | Meaning |',
    '| --- | --- | --- | --- | --- |',
    ...Object.entries(METRICS).map(
      ([name, { type, labels = {}, together = 'sum', help }]) =>
        `| \`${name}\` | ${type} | ${Object.entries(labels).map(labelText).join('; ')} | ${together} | ${cell(help)} |`,
    ),
  ].join('\n');
  const audit = [
    '# The audit trail',
    'Made by `npm run docs` from `src/audit/audit.ts` and `src/oauth/provider/refusal-reasons.ts`.',
    '',
    'Who did what when stands in the table `auth_events`: time, type, actor (`user`, `client`, `admin`: the command line, `system`),',
    'member, app, key, address, error id, and the details below. `npx pua audit` reads it, finds a refusal by the error id that the',
    'caller saw, and follows what comes (`--follow`). It holds no secret, and nothing that a caller sent: details are words and',
    'numbers of ours, or were typed by an admin. An event has at most 2,000 bytes of them.',
    '',
    '## Events',
    '',
    '| Type | Meaning | Details |',
    '| --- | --- | --- |',
    ...Object.entries(AUTH_EVENTS).map(
      ([type, { meaning, details }]) =>
        `| \`${type}\` | ${cell(meaning)} | ${Object.entries(details)
          .map(([name, [type, text]]) => `\`${name}\` (${type}): ${cell(text)}`)
          .join('; ')} |`,
    ),
    '',
    '## Reasons of refusals',
    '',
    '`reason` of `authorization.refused` and `token.refused`, and of the log lines of refused requests:',
    '',
    '| Reason | Meaning |',
    '| --- | --- |',
    ...Object.entries(REFUSAL_REASONS).map(([reason, { meaning }]) => `| \`${reason}\` | ${cell(meaning)} |`),
    '',
    '## What strangers cause',
    '',
    'Refusals that concern no member (an unknown app, a redirect URI that is not registered, a code that never was, a sign-in that',
    'has expired, too many requests from one address) are counted, and logged; of each process 100 a minute, 10 of them of one address, stand in the table',
    '`oauth_refusals` too, where `npx pua audit --error-id` finds them: a ring of 10,000 rows, in which one that comes takes the',
    'place of the oldest, and none stays longer than 30 days. The client id and the redirect URI stand there as they were sent, the',
    'latter without query and fragment, both clipped, and with `***` for every run of characters that could be a token or a key.',
    'Sign-ins under names that nobody has are not recorded.',
    '',
    '## How long it stays',
    '',
    '`AUDIT_RETENTION` (400d; 0: for ever) is the age after which events are swept, in batches, by any running server;',
    '`npx pua audit prune --before <duration>` does it by hand, and is itself recorded. Nobody can change an event, empty the table, or',
    'delete what is younger than seven days: triggers refuse it, whatever `session_replication_role` is. So whoever gets hold of',
    'the server’s database role cannot wipe out fresh traces, as long as that role does not own the table: run `pua db migrate` as',
    'an owner, and the server as a role that was granted `SELECT, INSERT, UPDATE, DELETE` on all tables and `USAGE` on all sequences.',
  ].join('\n');
  const environment = Object.entries(SETTINGS).map(
    ([name, { default: value, meaning }]) =>
      `# ${meaning.replaceAll('`', '')} (default: ${value})\n# ${name}=\n`,
  );
  const style = await resolveConfig(join(root, 'docs'));
  const markdown = (text) => format(text, { ...style, parser: 'markdown' });
  const withPart = (page, part) =>
    readFileSync(join(root, page), 'utf8').replace(
      /(?<=<!-- made by npm run docs -->\n)[^]*(?=<!-- end -->)/,
      `\n${part}\n\n`,
    );
  const made = {
    'docs/errors.md': await markdown(errors),
    'docs/settings.md': await markdown(settings),
    'docs/metrics.md': await markdown(metrics),
    'docs/audit.md': await markdown(audit),
    'docs/command-line.md': await markdown(
      commandLine(createProgram(), (command) => exampleOf(command) && asTyped(exampleOf(command))),
    ),
    'docs/libraries.md': await markdown(withPart('docs/libraries.md', libraries())),
    'docs/import.md': await markdown(withPart('docs/import.md', RECORD_TYPES.map(recordTable).join('\n\n'))),
    'docs/architecture.md': await markdown(withPart('docs/architecture.md', importsPicture())),
    'src/features/openapi/examples.json': await format(await recordExamples(), {
      parser: 'json',
      printWidth: 110,
    }),
    '.env.example': `# Made by npm run docs from src/config/settings.ts. Copy to .env, and set what differs.\n\n${environment.join('\n')}`,
  };
  const guides = await format(await renderGuides(made), JSON_STYLE);
  return { ...made, 'src/site/guides.json': guides };
}

/** Every command with its arguments, options and example. */
function commandLine(program, exampleOf) {
  const section = (command, name) => {
    const children = command.commands.map((child) => section(child, `${name} ${child.name()}`));
    if (exampleOf(command) === undefined) return children;
    const rows = [
      ...command.registeredArguments.map((argument) => [`<${argument.name()}>`, argument.description]),
      ...command.options.map((option) => [option.flags, optionText(option)]),
    ];
    const own = [
      `## ${name}`,
      `${command.description()}.`,
      ['```sh', exampleOf(command), '```'].join('\n'),
      [
        '| Argument or option | Meaning |',
        '| --- | --- |',
        ...rows.map(([flags, text]) => `| \`${cell(flags)}\` | ${cell(text)} |`),
      ].join('\n'),
    ].join('\n\n');
    return [own, ...children];
  };
  return [
    '# Command line',
    'Made by `npm run docs` from `src/cli/`. `npx pua …` reads the same settings as the server, and works beside a running one or alone,',
    'on the embedded database too; `pua` alone after `npm link`, and in the image. Results go to stdout, everything else to stderr. What',
    'cannot be undone is asked on a terminal, and nowhere else: there it wants `--yes`. Tables are cut to the terminal, and whole in a',
    'pipe. `--json` prints the result as one JSON document, times in UTC; a failure then is one line on stderr,',
    '`{"error": {"code": …, "message": …}}` with the code `wrong_use`, `failed`, `declined`, `unavailable` (the database) or `fault`',
    '(of ours). NO_COLOR is respected. Exit code 0: done, or so already; 1: failed; 2: wrong use. What the command line changes stands in',
    'the audit trail with the actor `admin`. `pua --version` prints the version.',
    '',
    program.commands
      .flatMap((command) => section(command, `pua ${command.name()}`))
      .flat(Infinity)
      .join('\n\n'),
  ].join('\n');
}

function labelText([label, values]) {
  return Array.isArray(values) ? `\`${label}\` (${values.join(', ')})` : `\`${label}\``;
}

function optionText({ description, mandatory, argChoices, defaultValue, defaultValueDescription }) {
  const value = defaultValueDescription ?? (typeof defaultValue === 'string' ? defaultValue : undefined);
  const notes = [
    ...(mandatory ? ['required'] : []),
    ...(argChoices ? [`one of ${argChoices.join(', ')}`] : []),
    ...(value === undefined ? [] : [`default ${value}`]),
  ];
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`;
}

const LANGUAGES = {
  browser: ['In a browser', 'js', 'node/package.json'],
  node: ['Node', 'js', 'node/package.json'],
  python: ['Python', 'python', 'python/requirements.txt'],
  go: ['Go', 'go', 'go/go.mod'],
  java: ['Java', 'java', 'java/pom.xml'],
  ruby: ['Ruby', 'ruby', undefined],
};

/**
 * A table of the libraries that test/libraries runs, and the part of each program that is the library's: from its line
 * `docs: package · what it does · what it does not` to the line `end`.
 */
function libraries() {
  const rows = [];
  const sections = [];
  for (const [folder, [language, fence, lock]] of Object.entries(LANGUAGES)) {
    sections.push(`## ${language}`);
    for (const file of globSync(`test/libraries/${folder}/**/*`, { cwd: root }).sort()) {
      if (!/\.(m?js|py|go|java|rb)$/.test(file)) continue;
      const program = /^[ \t]*(?:\/\/|#) docs: (.+?) · (.+?) · (.+)\n([^]*?)\n\s*(?:\/\/|#) end$/m.exec(
        readFileSync(join(root, file), 'utf8'),
      );
      if (!program) continue;
      const [, name, does, lacks, code] = program;
      const version = lock
        ? versionIn(readFileSync(join(root, 'test/libraries', lock), 'utf8'), name)
        : 'Debian 12';
      rows.push(`| ${language} | \`${name}\` | ${version} | ${cell(does)} | ${cell(lacks)} |`);
      sections.push(
        `### ${name}${folder === 'browser' ? ', in a page' : ''}`,
        `<!-- not run: test/libraries does, as ${file.replace('test/libraries/', '')} -->`,
        ['```' + fence, dedented(code.replaceAll('\t', '  ')), '```'].join('\n'),
      );
    }
  }
  const head = [
    '| Language | Package | Version | It does | It leaves to you |',
    '| --- | --- | --- | --- | --- |',
  ];
  return [[...head, ...rows].join('\n'), ...sections].join('\n\n');
}

/** Of a package, as a lock file of any language names it. */
function versionIn(lock, name) {
  const id = name
    .split(':')
    .at(-1)
    .replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  const found = new RegExp(
    `${id}[^\\d\\n]*?(?:/v\\d+)?(?:</artifactId>\\s*<version>|": "|==| v)(\\d[\\w.]*)`,
    'i',
  ).exec(lock);
  if (!found) throw new Error(`${name} has no version`);
  return found[1];
}

function dedented(text) {
  const lines = text.split('\n');
  const indents = lines.filter((line) => line.trim() !== '').map((line) => /^ */.exec(line)[0].length);
  const least = Math.min(...indents);
  return lines
    .map((line) => line.slice(least))
    .join('\n')
    .trim();
}

/** Which folder of src/ imports which, as a picture: arrows that follow from others are left out. */
function importsPicture() {
  const imports = new Map();
  for (const file of globSync('src/*/**/*.ts', { cwd: root, exclude: (name) => name.endsWith('.spec.ts') })) {
    const [, folder] = file.split('/');
    const others = imports.get(folder) ?? imports.set(folder, new Set()).get(folder);
    for (const [, path] of readFileSync(join(root, file), 'utf8').matchAll(/from '(\.[^']+)'/g)) {
      const [top, other, ...below] = relative(root, join(root, file, '..', path)).split('/');
      if (top === 'src' && below.length > 0 && other !== folder) others.add(other);
    }
  }
  const reaches = (from, to) => [...imports.get(from)].some((next) => next === to || reaches(next, to));
  const arrows = [...imports].flatMap(([from, others]) =>
    [...others]
      .filter((to) => ![...others].some((other) => other !== to && reaches(other, to)))
      .map((to) => `  ${from} --> ${to}`),
  );
  return ['```mermaid', 'flowchart TD', ...arrows.sort(), '```'].join('\n');
}

/** The fields of one file of an import. */
function recordTable({ name, fields }) {
  const rows = (fields, path) =>
    Object.entries(fields).flatMap(([field, { rule, required, fallback, absent: words, fields: inner }]) => {
      if (inner) return rows(inner, `${path}${field}.`);
      const absent = required
        ? 'needed'
        : words
          ? words
          : fallback === undefined
            ? 'null'
            : JSON.stringify(fallback);
      return `| \`${path}${field}\` | ${absent} | ${cell(rule)} |`;
    });
  return [`### ${name}`, '', '| Field | Absent | Must be |', '| --- | --- | --- |', ...rows(fields, '')].join(
    '\n',
  );
}

if (import.meta.main) {
  const made = await pages();
  if (process.argv.includes('--print')) console.log(JSON.stringify(made));
  else for (const [path, text] of Object.entries(made)) writeFileSync(join(root, path), text);
}
