// `npm run docs`: generates the pages of docs/ that are derived from the code. With --print it prints them as JSON instead
// of writing them, for a test that compares them.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { build } from './build.mjs';
import { goTypesOf } from '../clients/go/generate-types.mjs';
import { typesOf } from '../clients/typescript/generate-types.mjs';
import { recordExamples } from './examples.mjs';
import { drawTables } from './tables.mjs';

const root = join(import.meta.dirname, '..');
const cell = (text) => text.replaceAll('|', '\\|');

/** Returns path → text of every generated page. */
export async function pages() {
  await build();
  const { defaultOf, SETTINGS } = await import('../dist/src/config/settings.js');
  const { PROBLEMS } = await import('../dist/src/http/output/problems.js');
  const { metricOf, METRICS } = await import('../dist/src/runtime/metrics.js');
  const { createProgram } = await import('../dist/src/cli/program.js');
  const { exampleOf } = await import('../dist/src/cli/command.js');
  const { asTyped } = await import('../dist/src/cli/output.js');
  const { AUTH_EVENTS } = await import('../dist/src/audit/audit.js');
  const { REJECTION_REASONS } = await import('../dist/src/authorization-server/reasons/rejection-reasons.js');
  const { readObjects, textOf } = await import('../dist/src/operations/doctor/schema.js');
  const { MEMBER_TABLES, memberColumnsOf } = await import('../dist/src/database/schema/member-tables.js');
  const { RECORD_TYPES } = await import('../dist/src/import/record-types.js');
  const errors = [
    '# Error codes',
    "For developers: how to fix each of the API's errors (`application/problem+json`, RFC 9457).",
    "Each error's `type` is its description's URL, `GET /api/public/problems/{code}`.",
    '<!-- Made by `npm run docs` from `src/http/output/problems.ts`. -->',
    '',
    '| Status | Code | Meaning | Fix |',
    '| --- | --- | --- | --- |',
    ...[...PROBLEMS.values()].map(
      ({ status, code, meaning, fix }) => `| ${status} | \`${code}\` | ${cell(meaning)} | ${cell(fix)} |`,
    ),
  ].join('\n');
  const settings = [
    '# Settings',
    'For operators: this page lists every setting, its default, and when to set it. Settings are environment variables or lines of `.env` in the',
    'working directory; the environment takes precedence. If any value is invalid, the server reports all faults and does not start. Production requires `SECRET_KEY`',
    'and `DATABASE_URL`. <!-- Made by `npm run docs` from `src/config/settings.ts`. -->',
    '',
    '| Name | Default | Meaning | Set it … |',
    '| --- | --- | --- | --- |',
    ...Object.entries(SETTINGS).map(
      ([name, setting]) =>
        `| \`${name}\` | ${[defaultOf(setting), setting.meaning, setting.set].map(cell).join(' | ')} |`,
    ),
  ].join('\n');
  const metrics = [
    '# Metrics',
    'For operators: this page lists the metrics that `GET /metrics` on `METRICS_PORT` returns in the Prometheus text format. The response also has',
    'prom-client’s metrics (`nodejs_…`, `process_…`). No label contains an id or a caller’s input. With `WORKERS`, one response covers all processes: counters and',
    'histograms are sums, and the gauges below are combined as shown. <!-- Made by `npm run docs` from `src/runtime/metrics.ts`. -->',
    '',
    '| Metric | Type | Labels | Across processes | Meaning |',
    '| --- | --- | --- | --- | --- |',
    ...Object.keys(METRICS).map((name) => {
      const { type, labels = {}, together = 'sum', help } = metricOf(name);
      return `| \`${name}\` | ${type} | ${Object.entries(labels).map(labelText).join('; ')} | ${together} | ${cell(help)} |`;
    }),
  ].join('\n');
  const audit = [
    '# Audit events',
    'For operators and admins: the events in the audit log (table `auth_events`), and the reasons for rejections.',
    '<!-- Made by `npm run docs` from `src/audit/audit.ts` and `src/authorization-server/reasons/rejection-reasons.ts`. -->',
    '',
    'Each event has a time, type and actor (`user`, `client`, `system`, or `admin`: the command line), and the member, app, key, address and error id',
    'that it concerns. Its details have at most 2,000 bytes, and are texts unless the table names another type. No event contains a secret',
    'or anonymous callers’ input. `npx pua audit` shows the events.',
    '',
    '## Events',
    '',
    '| Type | Meaning | Details |',
    '| --- | --- | --- |',
    ...Object.entries(AUTH_EVENTS).map(
      ([type, { meaning, details }]) =>
        `| \`${type}\` | ${cell(meaning)} | ${Object.entries(details)
          .map(([name, [type, text]], i, all) => {
            const isLikeNext = String(all[i + 1]?.[1]) === String([type, text]);
            return isLikeNext
              ? `\`${name}\`, `
              : `\`${name}\`${type === 'text' ? '' : ` (${type})`}: ${cell(text)}; `;
          })
          .join('')
          .replace(/; $/, '')} |`,
    ),
    '',
    '## Reasons',
    '',
    '`reason` has these values in `authorization.refused`, `token.refused` and the log lines of rejected requests:',
    '',
    ...Object.entries(REJECTION_REASONS).map(([reason, meaning]) => `- \`${reason}\`: ${meaning}`),
    '',
    '## Rejections without a member',
    '',
    'The server counts and logs rejections that concern no member, such as those of unknown apps, unregistered redirect URIs and unknown codes. Each',
    'process also writes up to 100 of them per minute, at most 10 from one address or IPv6 network, to the table `oauth_refusals`,',
    'where `npx pua audit --error-id` finds them. The table keeps the last 10,000 rows, for at most 30 days. Of the parameters, it stores',
    'only client id and redirect URI (without query and fragment), truncated, with `***` for possible tokens and keys.',
    '',
    '## Retention',
    '',
    'Servers delete events older than `AUDIT_RETENTION` (400d; 0: never). `npx pua audit prune --before <duration>` deletes old events',
    'immediately. Triggers reject changes (except by erasure), TRUNCATE, and deletion of events younger than seven days,',
    'regardless of `session_replication_role`. An attacker with the server’s database role cannot delete recent events, unless that role owns the',
    'table. Run `pua db migrate` as the owner, and the server with [a smaller role](operations.md#the-databases-role).',
  ].join('\n');
  const personalData = [
    '# Personal data',
    'For reviewers: this page lists every table with members’ data: the column that names the member, the effect of erasure (`pua users erase`, or a',
    'deletion by an import or feed), and the part of the data export (`/account/data`) that contains the rows. The export contains no secrets.',
    '<!-- Made by `npm run docs` from the entities’ `@OfMember`. -->',
    '',
    '| Table | Member’s id in | Erasure | Data export | Secrets |',
    '| --- | --- | --- | --- | --- |',
    ...MEMBER_TABLES.toSorted((one, other) => (one.name < other.name ? -1 : 1)).map(
      memberTableRow(memberColumnsOf),
    ),
  ].join('\n');
  const environment = Object.entries(SETTINGS).map(
    ([name, setting]) =>
      `# ${setting.meaning.replaceAll('`', '')} (default: ${defaultOf(setting)})\n# ${name}=\n`,
  );
  const style = await resolveConfig(join(root, 'docs'));
  const markdown = (text) => format(text, { ...style, parser: 'markdown' });
  const withPart = (page, part) =>
    readFileSync(join(root, page), 'utf8').replace(
      /(?<=<!-- made by npm run docs -->\n)[^]*(?=<!-- end -->)/,
      `\n${part}\n\n`,
    );
  let objects;
  const { examples, openapi } = await recordExamples(
    async (dataSource) => (objects = await readObjects(dataSource)),
  );
  return {
    'docs/schema.sql': textOf(objects),
    'docs/contributors/tables.md': await markdown(
      `# Tables\nFor contributors: primary keys and references of all tables. [schema.sql](../schema.sql) has everything else. \`npm run docs\` generates both from a migrated database.\n\n${drawTables(objects)}`,
    ),
    'docs/developers/errors.md': await markdown(errors),
    'docs/operators/settings.md': await markdown(settings),
    'docs/operators/metrics.md': await markdown(metrics),
    'docs/operators/audit.md': await markdown(audit),
    'docs/trust/personal-data.md': await markdown(personalData),
    'docs/operators/command-line.md': await markdown(
      commandLine(await createProgram(), (command) => exampleOf(command) && asTyped(exampleOf(command))),
    ),
    'docs/developers/assistants.md': await markdown(withPart('docs/developers/assistants.md', assistants())),
    'docs/developers/libraries.md': await markdown(withPart('docs/developers/libraries.md', libraries())),
    'docs/operators/import.md': await markdown(
      withPart('docs/operators/import.md', RECORD_TYPES.map(recordTable).join('\n\n')),
    ),
    'docs/contributors/architecture.md': await markdown(
      withPart('docs/contributors/architecture.md', importsPicture()),
    ),
    'clients/go/schema.go': goTypesOf(openapi),
    'clients/typescript/src/schema.ts': typesOf(openapi),
    ...pythonTypes(openapi),
    'docs/examples.json': await format(examples, { ...style, parser: 'json' }),
    '.env.example': `# Made by npm run docs from src/config/settings.ts. Copy to .env, and set what differs.\n\n${environment.join('\n')}`,
  };
}

/** The Python client's types, generated by Python; nothing if Python is missing. */
function pythonTypes(openapi) {
  try {
    const program = join(root, 'clients/python/generate_types.py');
    const made = execFileSync('python3', ['-B', program, '-'], {
      input: JSON.stringify(openapi),
      encoding: 'utf8',
    });
    return { 'clients/python/src/public_user_api/schema.py': made };
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    console.error('clients/python/src/public_user_api/schema.py is unchanged: python3 is missing');
    return {};
  }
}

const names = (columns) => columns.map((column) => `\`${column}\``).join(', ');

/** Describes in one table row how a database table relates to its members. */
const memberTableRow = (memberColumnsOf) => (table) => {
  const { name, owner, erase, secrets } = table;
  const direct = memberColumnsOf(table);
  const through = owner.filter((column) => !direct.includes(column));
  const belongs = [
    ...(direct.length > 0 ? [names(direct)] : []),
    ...(through.length > 0 ? [`through ${names(through)}`] : []),
  ];
  const erased =
    erase === 'delete'
      ? 'deleted'
      : erase.keep
        ? `kept: ${erase.keep}`
        : `emptied: ${names(erase.clear)}${name === 'users' ? '; the username becomes `erased-<id>`' : ''}`;
  const { as, in: part, none, without = [] } = table.export;
  const exported = none
    ? `no: ${none}`
    : `\`${as ?? part}\`${without.length > 0 ? `, without ${names(without)}` : ''}`;
  return `| \`${name}\` | ${belongs.join(', or ')} | ${erased} | ${exported} | ${names(secrets)} |`;
};

/** Lists every command with its arguments, options and example. */
function commandLine(program, exampleOf) {
  const section = (command, name) => {
    const children = command.commands.map((child) => section(child, `${name} ${child.name()}`));
    if (exampleOf(command) === undefined) return children;
    const rows = [
      ...command.registeredArguments.map((argument) => [`<${argument.name()}>`, optionText(argument)]),
      ...command.options
        .filter(({ long }) => long !== '--json')
        .map((option) => [option.flags, optionText(option)]),
    ];
    const own = [
      `## ${name}`,
      `${command.description()}.`,
      ['```sh', exampleOf(command), '```'].join('\n'),
      ...(rows.length > 0 ? [rows.map(([flags, text]) => `- \`${flags}\`: ${text}`).join('\n')] : []),
    ].join('\n\n');
    return [own, ...children];
  };
  return [
    '# Command line',
    'For operators and admins: every command of `npx pua …` (`pua` after `npm link`, and in the image). Most commands read the server’s settings; all work even',
    'without a running server. <!-- Made by `npm run docs` from `src/cli/`. -->',
    '',
    '- **Output.** Results go to stdout, everything else to stderr. With `--json`, results are JSON with times in UTC. Tables that are too wide',
    '  for a terminal get shorter cells (not ids and types) or, below 100 columns or if still too wide, one block per row. NO_COLOR disables colors.',
    '- **Exit codes.** 0: success, even if nothing changed; 1: failure; 2: wrong use. With `--json`, a failure is the last line on stderr,',
    '  `{"error": {"code": …, "message": …}}`, with the code `wrong_use`, `failed`, `unavailable` (the database) or `fault` (a bug).',
    '- **Confirmation.** Without `--yes`, commands with this option ask for confirmation on a terminal; elsewhere, and with `--json`, they fail,',
    '  except `keys revoke` and `webhooks disable`.',
    '- **Durations** are a whole number with s, m, h or d.',
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
    ...(argChoices && argChoices.length <= 12 ? [`one of ${argChoices.join(', ')}`] : []),
    ...(value === undefined ? [] : [`default ${value}`]),
  ];
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`;
}

const LANGUAGES = {
  browser: ['In a browser', 'js', 'node/package.json'],
  node: ['Node', 'js', 'node/package.json'],
  python: ['Python', 'python', 'python/requirements.txt'],
  go: ['Go', 'go', 'go/go.mod'],
  'oauth2-proxy': ['Any, behind a proxy', 'go', 'oauth2-proxy/go.mod'],
  java: ['Java', 'java', 'java/pom.xml'],
  spring: ['Spring Boot', 'java', 'spring/pom.xml'],
  rust: ['Rust', 'rust', 'rust/Cargo.toml'],
  ruby: ['Ruby', 'ruby', undefined],
};
const ASSISTANTS = {
  'assistants/node': ['Node', 'js', 'assistants/node/package.json'],
  'assistants/python': ['Python', 'python', 'assistants/python/requirements.txt'],
  'assistants/go': ['Go', 'go', 'assistants/go/go.mod'],
  'assistants/rust': ['Rust', 'rust', 'assistants/rust/Cargo.toml'],
};

/** The libraries whose programs libraries.md shows; confidential-clients.md has the frameworks. */
const SHOWN = ['oidc-client-ts', 'openid-client', '@auth/core', 'Authlib'];

/** A table of the libraries that compat runs, and excerpts of the shown programs. */
function libraries() {
  const programs = programsOf(LANGUAGES);
  const sections = Object.entries(LANGUAGES).flatMap(([folder, [language, fence]]) => {
    const shown = programs.filter((program) => program.folder === folder && SHOWN.includes(program.name));
    return [
      ...(shown.length > 0 ? [`## ${language}`] : []),
      ...shown.flatMap(({ name, file, code }) => [
        `### ${name}${folder === 'browser' ? ', in a page' : ''}`,
        `<!-- not run: npm run compat does, as ${file.replace('compat/', '')} -->`,
        ['```' + fence, dedented(code.replaceAll('\t', '  ')), '```'].join('\n'),
      ]),
    ];
  });
  return [tableOf(programs, true), ...sections].join('\n\n');
}

/** A table of the MCP clients that compat runs. */
const assistants = () => tableOf(programsOf(ASSISTANTS));

/**
 * Lists compat's programs in these languages. Each program's excerpt is between the line
 * `docs: package · what it does · what it does not` and the line `end`. A line `auth:` states how its clients authenticate.
 */
function programsOf(languages) {
  return Object.entries(languages).flatMap(([folder, [language, , lock]]) =>
    globSync(`compat/${folder}/**/*`, { cwd: root })
      .filter((file) => /\.(m?js|py|go|java|rb|rs)$/.test(file))
      .sort()
      .flatMap((file) => {
        const source = readFileSync(join(root, file), 'utf8');
        const program = /^[ \t]*(?:\/\/|#) docs: (.+?) · (.+?) · (.+)\n([^]*?)\n\s*(?:\/\/|#) end$/m.exec(
          source,
        );
        if (!program) return [];
        const auth = /^(?:\/\/|#) auth: (.+)$/m.exec(source)?.[1] ?? 'none';
        const [, name, does, lacks, code] = program;
        const version = lock
          ? versionIn(readFileSync(join(root, 'compat', lock), 'utf8'), name)
          : 'Debian 12';
        return [{ folder, file, language, name, version, auth, does, lacks, code }];
      }),
  );
}

function tableOf(programs, isOfLibraries = false) {
  const ofLibraries = (...cells) => (isOfLibraries ? cells : []);
  const row = (cells) => `| ${cells.join(' | ')} |`;
  const head = [
    'Language',
    'Package, version',
    ...ofLibraries('Client authentication', 'Features'),
    'Missing, or your task',
  ];
  return [
    row(head),
    row(head.map(() => '---')),
    ...programs.map(({ language, name, version, auth, does, lacks }) =>
      row([
        language,
        `\`${name}\` ${version}`,
        ...ofLibraries(auth.replaceAll(' ', ', '), cell(does)),
        cell(lacks),
      ]),
    ),
  ].join('\n');
}

/** Finds the version of a package in a lock file of any language. */
function versionIn(lock, name) {
  const id = name
    .split(':')
    .at(-1)
    .replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  const found = new RegExp(
    `(?<![\\w-])${id}[^\\d\\n]*?(?:/v\\d+)?(?:</artifactId>\\s*<version>|": "|==|"=| v)(\\d[\\w.]*)`,
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

/** The folder of src/ that a file belongs to. A resource's import belongs to the import, and its API is a separate layer. */
function layerOf(path) {
  const [, folder] = path.split('/');
  if (folder !== 'resources' || /\/(resources|table|access|derived)\.[jt]s$/.test(path)) return folder;
  return /\/import\.[jt]s$/.test(path) ? 'import' : 'resources-api';
}

/** A diagram of imports between the folders of src/, without arrows implied by others. */
function importsPicture() {
  const imports = new Map();
  for (const file of globSync('src/*/**/*.ts', { cwd: root, exclude: (name) => name.endsWith('.spec.ts') })) {
    const folder = layerOf(file);
    const others = imports.get(folder) ?? imports.set(folder, new Set()).get(folder);
    for (const [, path] of readFileSync(join(root, file), 'utf8').matchAll(/from '(\.[^']+)'/g)) {
      const target = relative(root, join(root, file, '..', path));
      if (/^src\/.+\//.test(target) && layerOf(target) !== folder) others.add(layerOf(target));
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

/** The fields of an import file. */
/** Rules that many fields share, by their names in docs/operators/import.md. */
const SHARED_RULES = [
  [/^an integer from 1 to 9000000000000000$/, 'an id'],
  [/^a time from .*$/, 'a time'],
  [/^an absolute http or https URL .*$/, 'a URL'],
];

function recordTable({ name, fields }) {
  const cells = (fields, path) =>
    Object.entries(fields).flatMap(([field, { rule, required, fallback, absent: words, fields: inner }]) => {
      if (inner) return cells(inner, `${path}${field}.`);
      const absent = required
        ? 'required'
        : words
          ? words
          : fallback === undefined
            ? 'null'
            : JSON.stringify(fallback);
      const [, shared = rule] = SHARED_RULES.find(([words]) => words.test(rule)) ?? [];
      return [[`\`${path}${field}\``, `${absent} | ${cell(shared)}`]];
    });
  const rows = [...Map.groupBy(cells(fields, ''), ([, rest]) => rest)].map(
    ([rest, alike]) => `| ${alike.map(([names]) => names).join(', ')} | ${rest} |`,
  );
  return [`### ${name}`, '', '| Field | Absent | Must be |', '| --- | --- | --- |', ...rows].join('\n');
}

if (import.meta.main) {
  const made = await pages();
  if (process.argv.includes('--print')) console.log(JSON.stringify(made));
  else for (const [path, text] of Object.entries(made)) writeFileSync(join(root, path), text);
}
