// The import borders of src/ (docs/architecture.md): what stands lower knows nothing of what stands higher.
const only = (folder, allowed, comment) => ({
  name: `${folder}-imports`,
  comment,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: { path: '^src/', pathNot: [...new Set([folder, ...allowed])].map((name) => `^src/${name}/`) },
});

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, dependencyTypesNot: ['type-only'] },
    },
    only('values', [], 'strings, moments and addresses know nothing'),
    only('crypto', [], 'encrypts, hashes and signs what it is given'),
    only('config', ['crypto', 'values'], 'settings are read before anything else exists'),
    only('database', ['config', 'crypto', 'values'], 'tables know nothing of HTTP'),
    only('http', ['database', 'config', 'crypto', 'values'], 'what every endpoint shares knows no endpoint'),
    only('audit', ['database', 'values'], 'records what it is told'),
    only(
      'auth',
      ['audit', 'crypto', 'http', 'database', 'config', 'values'],
      'who calls does not depend on what is called',
    ),
    only(
      'accounts',
      ['auth', 'audit', 'crypto', 'http', 'database', 'config', 'values'],
      'sign-in serves the authorization server, not the reverse',
    ),
    only(
      'calendar',
      ['auth', 'audit', 'crypto', 'http', 'database', 'config', 'values'],
      'a link is a credential, and what it opens is read from tables',
    ),
    only(
      'oauth',
      ['calendar', 'accounts', 'auth', 'audit', 'crypto', 'http', 'database', 'config', 'values'],
      'the authorization server knows no feature',
    ),
    only(
      'operations',
      ['accounts', 'auth', 'audit', 'crypto', 'http', 'database', 'config', 'values'],
      'runs beside the features; an import brings password hashes',
    ),
    only(
      'changes',
      ['http', 'database', 'config', 'crypto', 'values'],
      'what changed is known from tables, whoever asks or wrote',
    ),
    only(
      'webhooks',
      ['changes', 'audit', 'http', 'database', 'config', 'crypto', 'values'],
      'who is told of changes is known from tables, whoever registers or erases',
    ),
    only(
      'features',
      ['changes', 'auth', 'http', 'database', 'config', 'crypto', 'values'],
      'a feature needs credentials and data, nothing else',
    ),
    only(
      'platform',
      [
        'changes',
        'operations',
        'accounts',
        'auth',
        'audit',
        'http',
        'database',
        'config',
        'crypto',
        'values',
      ],
      'what the platform sends goes the way of an import',
    ),
    only(
      'personal-data',
      ['features', 'oauth', 'calendar', 'accounts', 'auth', 'audit', 'http', 'database', 'config', 'values'],
      'everything about a member is in every part',
    ),
    only(
      'site',
      ['features', 'oauth', 'auth', 'http', 'config', 'crypto', 'values'],
      'what strangers see shows the API and leads to the sign-in',
    ),
    {
      name: 'features-apart',
      comment: 'a feature uses another only through the service that its module exports',
      severity: 'error',
      from: { path: '^src/features/([^/]+)/' },
      to: { path: '^src/features/([^/]+)/', pathNot: ['^src/features/$1/', '\\.(service|dto)\\.ts$'] },
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
        pathNot: ['^src/http/public-https\\.', '^src/oauth/upstream/provider-fetch\\.', '\\.spec\\.ts$'],
      },
      to: { path: '^(node:)?(dns|dns/promises|https)$' },
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
