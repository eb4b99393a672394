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
    only('config', [], 'settings are read before anything else exists'),
    only('database', ['config'], 'tables know nothing of HTTP'),
    only('http', ['database', 'config'], 'what every endpoint shares knows no endpoint'),
    only('auth', ['http', 'database', 'config'], 'who calls does not depend on what is called'),
    only(
      'accounts',
      ['auth', 'http', 'database', 'config'],
      'sign-in serves the authorization server, not the reverse; it records in the audit trail',
    ),
    only(
      'oauth',
      ['accounts', 'auth', 'http', 'database', 'config'],
      'the authorization server knows no feature',
    ),
    only(
      'operations',
      ['accounts', 'auth', 'http', 'database', 'config'],
      'runs beside the features; an import brings password hashes',
    ),
    only(
      'features',
      ['auth', 'http', 'database', 'config'],
      'a feature needs credentials and data, nothing else',
    ),
    {
      name: 'features-apart',
      comment: 'a feature uses another only through the service that its module exports',
      severity: 'error',
      from: { path: '^src/features/([^/]+)/' },
      to: { path: '^src/features/([^/]+)/', pathNot: ['^src/features/$1/', '\\.(service|dto)\\.ts$'] },
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
