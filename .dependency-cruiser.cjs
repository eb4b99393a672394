// The import borders of src/ (docs/contributors/architecture.md): what stands lower knows nothing of what stands higher.
const only = (folder, allowed, comment) => ({
  name: `${folder}-imports`,
  comment,
  severity: 'error',
  from: { path: pathOf(folder) },
  to: { path: '^src/', pathNot: [...new Set([folder, ...allowed])].map(pathOf) },
});

/** The layers of a resource, whose files are in one folder. */
const LAYERS = {
  tables: '^src/resources/[^/]+/table\\.ts$',
  resources: '^src/resources/(resources|[^/]+/(table|access|derived))\\.ts$',
  'resources-import': '^src/resources/[^/]+/import\\.ts$',
  'resources-api': '^src/resources/[^/]+/(?!(table|access|derived|import)\\.ts$)',
};
const pathOf = (name) => LAYERS[name] ?? `^src/${name}/`;

/** Rooms of a folder: each may import those named before it, and nothing else of the folder. */
const rooms = (folder, names) =>
  names.map((name, i) => ({
    name: `${folder}-${name}-imports`,
    comment: 'rooms are in one direction',
    severity: 'error',
    from: { path: `^src/${folder}/${name}/` },
    to: { path: `^src/${folder}/`, pathNot: names.slice(0, i + 1).map((room) => `^src/${folder}/${room}/`) },
  }));

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, dependencyTypesNot: ['type-only'] },
    },
    only('values', [], 'strings, moments and addresses know nothing'),
    only('model', ['values'], 'fields, columns and schemas know no table'),
    only('resources', ['model', 'values'], 'what each resource is to its readers depends on nothing'),
    only('resources-import', ['resources', 'import', 'accounts', 'model', 'values'], 'the records of an import know no route'),
    only('resources-api', ['features', 'resources', 'auth', 'http', 'runtime', 'database', 'config', 'crypto', 'model', 'values'], 'a resource needs credentials and data, nothing else'),
    only('crypto', ['values'], 'encrypts, hashes and signs what it is given'),
    only('config', ['crypto', 'values'], 'settings are read before anything else exists'),
    only('database', ['tables', 'config', 'crypto', 'model', 'values'], 'tables know nothing of HTTP'),
    ...rooms('database', ['schema', 'embedded', 'postgres', 'replicas']),
    only('runtime', ['config', 'values'], 'logs, metrics, periodic work and outgoing requests know no table'),
    only('http', ['runtime', 'database', 'config', 'crypto', 'model', 'values'], 'the pipeline knows no endpoint'),
    only('audit', ['database', 'values'], 'records what it is told'),
    only(
      'auth',
      ['resources', 'audit', 'crypto', 'http', 'runtime', 'database', 'config', 'model', 'values'],
      'who calls does not depend on what is called',
    ),
    only(
      'accounts',
      ['tables', 'auth', 'audit', 'crypto', 'http', 'runtime', 'database', 'config', 'values'],
      'sign-in serves the authorization server, not the reverse',
    ),
    only(
      'clients',
      ['auth', 'audit', 'crypto', 'http', 'runtime', 'database', 'config', 'values'],
      'which apps there are does not depend on how they sign members in',
    ),
    only(
      'calendar',
      ['resources', 'auth', 'audit', 'crypto', 'http', 'runtime', 'database', 'config', 'values'],
      'a link is a credential, and what it opens is read from tables',
    ),
    only(
      'layout',
      ['auth', 'http', 'runtime', 'config', 'crypto', 'values'],
      'what all pages look like does not depend on what they show',
    ),
    only(
      'authorization-server',
      [
        'layout',
        'clients',
        'accounts',
        'auth',
        'audit',
        'crypto',
        'http',
        'runtime',
        'database',
        'config',
        'values',
      ],
      'the authorization server knows neither pages nor the platform’s own login: ports.ts says what it needs of them',
    ),
    only(
      'federation',
      [
        'authorization-server',
        'clients',
        'accounts',
        'auth',
        'audit',
        'crypto',
        'http',
        'runtime',
        'database',
        'config',
        'values',
      ],
      'the platform’s own login knows no page',
    ),
    only(
      'member-pages',
      [
        'federation',
        'layout',
        'authorization-server',
        'clients',
        'calendar',
        'webhooks',
        'accounts',
        'auth',
        'audit',
        'crypto',
        'http',
        'runtime',
        'database',
        'config',
        'values',
      ],
      'members’ pages know no feature',
    ),
    {
      name: 'folders-in-one-direction',
      comment:
        'no two folders of a room import each other: ports.ts says what the lower one needs of the higher',
      severity: 'error',
      scope: 'folder',
      from: {
        path: '^src/(accounts|authorization-server|clients|crypto|federation|layout|member-pages|values)',
      },
      to: { circular: true },
    },
    only(
      'import',
      ['resources-import', 'tables', 'accounts', 'audit', 'crypto', 'database', 'config', 'model', 'values'],
      'an import brings password hashes',
    ),
    only(
      'operations',
      ['resources', 'import', 'accounts', 'auth', 'audit', 'crypto', 'http', 'runtime', 'database', 'config', 'model', 'values'],
      'runs beside the features',
    ),
    only(
      'webhooks',
      ['resources', 'auth', 'audit', 'http', 'runtime', 'database', 'config', 'crypto', 'values'],
      'who is told of changes is known from tables, whoever registers or erases',
    ),
    only(
      'features',
      ['resources-api', 'resources', 'auth', 'http', 'runtime', 'database', 'config', 'crypto', 'model', 'values'],
      'a feature needs credentials and data, nothing else',
    ),
    only(
      'platform',
      [
        'import',
        'operations',
        'accounts',
        'auth',
        'audit',
        'http',
        'runtime',
        'database',
        'config',
        'crypto',
        'model', 'values',
      ],
      'what the platform sends goes the way of an import',
    ),
    only(
      'personal-data',
      [
        'resources-api',
        'features',
        'member-pages',
        'authorization-server',
        'clients',
        'calendar',
        'accounts',
        'auth',
        'audit',
        'http',
        'runtime',
        'database',
        'config',
        'values',
      ],
      'everything about a member is in every part',
    ),
    only(
      'openapi',
      ['resources', 'auth', 'http', 'config', 'model', 'values'],
      'describes the routes that it finds, and imports none',
    ),
    only('mcp', ['auth', 'http', 'model', 'config'], 'makes tools of the routes that it finds, and imports none'),
    only(
      'site',
      [
        'layout',
        'openapi',
        'member-pages',
        'operations',
        'clients',
        'auth',
        'http',
        'runtime',
        'config',
        'crypto',
        'values',
      ],
      'what strangers see shows the API and leads to the sign-in',
    ),
    {
      name: 'features-apart',
      comment: 'a feature uses another only through the service that its module exports',
      severity: 'error',
      from: { path: '^src/(?:features|resources)/([^/]+)/' },
      to: {
        path: '^src/(features|resources)/[^/]+/',
        pathNot: [
          '^src/(features|resources)/$1/',
          '\\.(service|dto)\\.ts$',
          '/(table|access|derived|api)\\.ts$',
        ],
      },
    },
    {
      name: 'cryptography-has-one-room',
      comment:
        'keys, hashes and randomness are chosen in one place, where each choice is tested; specs check it from outside',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/crypto/', '\\.spec\\.ts$'] },
      to: { path: '^(node:)?(web)?crypto$' },
    },
    {
      name: 'strangers-have-one-door',
      comment:
        "addresses that others chose are looked up and connected to in one place, which takes no thread and no place; the platform's own login, which may be in /etc/hosts, in another that takes one thread",
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [
          '^src/runtime/(outgoing|public-https)\\.',
          '^src/federation/provider-fetch\\.',
          '\\.spec\\.ts$',
        ],
      },
      to: { path: '^(node:)?(dns|dns/promises|https)$' },
    },
    {
      name: 'who-sends-knows-whom-it-may-reach',
      comment: 'the client itself reaches everybody: only these two, which decide whom, may use it',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(runtime/public-https|federation/provider-fetch)\\.' },
      to: { path: '^src/runtime/outgoing\\.' },
    },
    {
      name: 'environment-is-read-in-one-place',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/config/' },
      to: { path: '^src/config/settings' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
