import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { loadConfig } from '../../src/config/config.js';
import { REMOVED_SETTINGS, SETTINGS } from '../../src/config/settings.js';
import { foreignFolder } from '../support/folders.js';

const SECRET = Buffer.alloc(32, 'secret').toString('base64');
const production = {
  NODE_ENV: 'production',
  SECRET_KEY: SECRET,
  DATABASE_URL: 'postgres://db.example/pua',
  PUBLIC_URL: 'https://api.example',
};

describe('settings', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pua-config-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('have defaults for development, and a generated secret that only its owner can read', () => {
    const config = loadConfig({ DATA_DIR: folder });
    expect(config).toMatchObject({
      production: false,
      host: '127.0.0.1',
      port: 3000,
      publicUrl: 'http://localhost:3000',
      databaseUrl: undefined,
      requestDeadlines: { headers: 5_000, whole: 10_000 },
      shortestRefusal: 500,
      rateLimits: { read: 300, write: 30, auth: 20 },
      workers: 1,
      seedDemo: true,
    });
    expect(statSync(join(folder, 'secret-key')).mode & 0o777).toBe(0o600);
    const again = loadConfig({ DATA_DIR: folder });
    expect(again.secrets.derive('x')[0]!.equals(config.secrets.derive('x')[0]!)).toBe(true);
  });

  it('reject a folder that others own or can write to, and make the secret’s file private', () => {
    const laid = mkdtempSync(join(tmpdir(), 'pua-config-'));
    writeFileSync(join(laid, 'secret-key'), SECRET, { mode: 0o644 });
    chmodSync(laid, 0o777);
    expect(() => loadConfig({ DATA_DIR: laid })).toThrow(
      /^DATA_DIR .* is writable by others: run `chmod 700/,
    );
    chmodSync(laid, 0o755);
    loadConfig({ DATA_DIR: laid });
    expect(statSync(join(laid, 'secret-key')).mode & 0o777).toBe(0o600);
    expect(() => loadConfig({ DATA_DIR: foreignFolder(laid) })).toThrow(
      /^DATA_DIR .* belongs to another user/,
    );
    rmSync(laid, { recursive: true });
  });

  it('each have a phrase that states when to set them', () => {
    for (const [name, { set }] of Object.entries(SETTINGS))
      expect([name, set]).toEqual([
        name,
        expect.stringMatching(/^(behind|higher|if|in|lower|to|where|wherever|while|with)\b.{9,}[^.]$/),
      ]);
  });

  it('include every variable that deploy/ sets for the server', () => {
    const files = [
      ...globSync('deploy/{compose,kubernetes,systemd}/*.{yml,service}'),
      'docker-compose.yml',
      'Dockerfile',
    ];
    const assigned = files.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/^(?!\s*#).*?\b([A-Z][A-Z_]{3,})(?:=|: )/gm)].map(
        ([, name]) => name!,
      ),
    );
    const ofOthers = /^(PG|POSTGRES_|REPLICATION_|MALLOC_|NODE_COMPILE_)|^(PATH|PRIMARY|SERVERS)$/;
    const names = new Set(assigned.filter((name) => !ofOthers.test(name)));
    expect(names.size).toBeGreaterThan(6);
    expect([...names].filter((name) => !Object.hasOwn(SETTINGS, name))).toEqual([]);
  });

  it('have a default shutdown delay of 5 seconds in production, and of 0 in development', () => {
    expect(loadConfig({ DATA_DIR: folder }).shutdownDelaySeconds).toBe(0);
    expect(loadConfig(production).shutdownDelaySeconds).toBe(5);
    expect(loadConfig({ ...production, SHUTDOWN_DELAY: '0' }).shutdownDelaySeconds).toBe(0);
  });

  it('are all reported at once if invalid, with their names and without secrets', () => {
    const wrong = {
      PORT: 'eighty',
      DATABASE_URL: 'mysql://user:hunter2@db',
      SECRET_KEY: 'hunter2',
      LOG_LEVEL: 'loud',
      PUBLIC_URL: 'http://a.example', // http is wrong only in production
    };
    const refuse = () => loadConfig({ NODE_ENV: 'production', ...wrong });
    for (const name of Object.keys(wrong)) expect(refuse).toThrow(name);
    expect(refuse).not.toThrow('hunter2');
  });

  it.each([
    ['PLATFORM_COLOR', '#ffcc00', /^A setting is wrong: PLATFORM_COLOR must be #rrggbb, and dark enough/],
    ['PLATFORM_COLOR', 'navy', /PLATFORM_COLOR must be #rrggbb/],
    ['PLATFORM_NAME', 'two\nlines', /PLATFORM_NAME must have 1 to 60 printable characters/],
    ['PLATFORM_LOGO_URL', 'logo.png', /PLATFORM_LOGO_URL must be a URL/],
    ['PRIVACY_URL', 'javascript:alert(1)', /PRIVACY_URL must be a URL/],
    ['SIGN_UP_URL', 'mailto:join@platform.example', /SIGN_UP_URL must be a URL/],
    ['ACCESS_LONGEST', '31', /ACCESS_LONGEST must be once, 30, 180 or unlimited/],
    ['ACCESS_PRESELECTED', '30d', /ACCESS_PRESELECTED must be once, 30, 180 or unlimited/],
    ['DEVELOPER_CONSOLE', 'on', /DEVELOPER_CONSOLE must be off, reviewed, open, true or false/],
  ])('reject an invalid name, color, URL or choice: %s=%s', (name, value, why) => {
    expect(() => loadConfig({ DATA_DIR: folder, [name]: value })).toThrow(why);
  });

  it.each([
    ['off', { developerConsole: false, reviewsApps: false }],
    ['false', { developerConsole: false, reviewsApps: false }],
    ['reviewed', { developerConsole: true, reviewsApps: true }],
    ['open', { developerConsole: true, reviewsApps: false }],
    ['true', { developerConsole: true, reviewsApps: false }],
  ])('set the developer console and app reviews by DEVELOPER_CONSOLE=%s', (DEVELOPER_CONSOLE, expected) => {
    expect(loadConfig({ DATA_DIR: folder, DEVELOPER_CONSOLE })).toMatchObject(expected);
  });

  it.each([
    'postgres://one,two/pua',
    'postgres://pua@one:5432,two:5432/pua',
    'postgresql://pua:hunter2@one,two:5432/pua?target_session_attrs=read-write',
    'postgres:///pua?host=one,two',
    'postgres:///pua?user=pua&host=one%2Ctwo',
  ])('reject several hosts in a database URL, and name HAProxy and PgBouncer: %s', (DATABASE_URL) => {
    const refuse = () => loadConfig({ ...production, DATABASE_URL, DATABASE_DIRECT_URL: DATABASE_URL });
    expect(refuse).toThrow(
      /DATABASE_URL must name one host: .*HAProxy, PgBouncer.*; DATABASE_DIRECT_URL must name/,
    );
    expect(refuse).not.toThrow('hunter2');
  });

  it.each(['DATABASE_URL', 'DATABASE_DIRECT_URL', 'DATABASE_READ_URL'])(
    'accept only one host in PGHOST if %s names no host',
    (name) => {
      const hostless = { ...production, [name]: 'postgres:///pua' };
      expect(() => loadConfig({ ...hostless, PGHOST: 'one,two' })).toThrow(
        /^A setting is wrong: PGHOST must name one host: .*HAProxy, PgBouncer/,
      );
      loadConfig({ ...hostless, PGHOST: 'one' });
      loadConfig({ ...production, [name]: 'postgres://db/pua', PGHOST: 'one,two' });
      loadConfig({ ...production, [name]: 'postgres:///pua?host=/var/run/postgresql', PGHOST: 'one,two' });
    },
  );

  it.each([
    'postgres://pua@db:5432/pua?target_session_attrs=read-write',
    'postgres://pua,pub:hun%2Cter2@db/pua?application_name=a,b',
    'postgres:///pua?host=/var/run/postgresql',
    'postgres://pua@%2Fvar%2Frun%2Fpostgresql/pua',
  ])('accept a database URL with one host or a socket: %s', (DATABASE_URL) => {
    expect(loadConfig({ ...production, DATABASE_URL }).databaseUrl).toBe(DATABASE_URL);
  });

  it.each(['prefer', 'require', 'verify-ca'])('treat sslmode=%s of a database URL as verify-full', (mode) => {
    const url = (sslmode: string) => `postgres://pua@db/pua?sslmode=${sslmode}&application_name=pua`;
    expect(loadConfig({ ...production, DATABASE_URL: url(mode) }).databaseUrl).toBe(url('verify-full'));
    const asInLibpq = `${url(mode)}&uselibpqcompat=true`;
    expect(loadConfig({ ...production, DATABASE_URL: asInLibpq }).databaseUrl).toBe(asInLibpq);
  });

  it('accept SQL_REQUEST_IDS only with DATABASE_URL', () => {
    expect(loadConfig(production).sqlRequestIds).toBe(false);
    expect(loadConfig({ ...production, SQL_REQUEST_IDS: 'true' }).sqlRequestIds).toBe(true);
    expect(() => loadConfig({ DATA_DIR: folder, SQL_REQUEST_IDS: 'true' })).toThrow(
      'SQL_REQUEST_IDS needs DATABASE_URL: the embedded database writes no log',
    );
  });

  it('accept replicas separated by spaces or commas, but no wrong URL, and no replica of the embedded database', () => {
    expect(loadConfig(production).databaseReadUrls).toEqual([]);
    const [one, two] = ['postgres://one.example/pua', 'postgresql://two.example:5433/pua?sslmode=disable'];
    for (const DATABASE_READ_URL of [`${one} ${two}`, `${one},${two}`, ` ${one},\n  ${two} `])
      expect(loadConfig({ ...production, DATABASE_READ_URL }).databaseReadUrls).toEqual([one, two]);
    for (const [DATABASE_READ_URL, fault] of [
      [' , ', /DATABASE_READ_URL must name at least one database/],
      [
        `${one} postgres:///pua?host=a,b`,
        /DATABASE_READ_URL must be a URL|DATABASE_READ_URL must name one host/,
      ],
      [`${one} https://two.example`, /DATABASE_READ_URL must be a URL that starts with postgres/],
    ] as const)
      expect(() => loadConfig({ ...production, DATABASE_READ_URL })).toThrow(fault);
    expect(() => loadConfig({ DATA_DIR: folder, DATABASE_READ_URL: one })).toThrow(
      /DATABASE_READ_URL needs DATABASE_URL: the embedded database has no replicas/,
    );
  });

  it('name PGPASSWORD if a password breaks DATABASE_URL', () => {
    const DATABASE_URL = 'postgres://pua:p/a#ss@w%d@db:5432/pua';
    expect(() => loadConfig({ ...production, DATABASE_URL })).toThrow(
      /DATABASE_URL must be a URL .*PGPASSWORD/,
    );
  });

  const upstream = {
    UPSTREAM_ISSUER: 'https://login.example',
    UPSTREAM_CLIENT_ID: 'pua',
    UPSTREAM_CLIENT_SECRET: 'hunter2',
  };

  it('accept an external identity provider, with common defaults', () => {
    expect(loadConfig({ ...production, ...upstream }).upstream).toEqual({
      issuer: 'https://login.example',
      clientId: 'pua',
      clientSecret: 'hunter2',
      clientKey: undefined,
      scopes: 'openid',
      label: 'login.example',
      claim: 'sub',
      match: 'external_id',
      createMembers: false,
      logout: false,
    });
    expect(loadConfig(production)).toMatchObject({ upstream: undefined, localSignIn: true });
    const local = { DATA_DIR: folder, ...upstream, UPSTREAM_ISSUER: 'http://127.0.0.1:9' };
    expect(loadConfig(local).upstream?.issuer).toBe('http://127.0.0.1:9');
    expect(loadConfig({ ...local, PLATFORM_NAME: 'Example' }).upstream?.label).toBe('Example');
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      'incomplete settings',
      { UPSTREAM_LABEL: 'x' },
      /UPSTREAM_ISSUER and UPSTREAM_CLIENT_ID are required for UPSTREAM_LABEL/,
    ],
    [
      'no secret',
      { ...upstream, UPSTREAM_CLIENT_SECRET: '' },
      /UPSTREAM_CLIENT_SECRET or UPSTREAM_CLIENT_KEY_FILE is/,
    ],
    ['secret and key', { ...upstream, UPSTREAM_CLIENT_KEY_FILE: '/dev/null' }, /one of them/],
    [
      'an invalid key',
      { ...upstream, UPSTREAM_CLIENT_SECRET: '', UPSTREAM_CLIENT_KEY_FILE: '/dev/null' },
      /UPSTREAM_CLIENT_KEY_FILE must be a readable file/,
    ],
    [
      'http to another host in development',
      { ...upstream, NODE_ENV: 'development', UPSTREAM_ISSUER: 'http://login.example' },
      /UPSTREAM_ISSUER must be https/,
    ],
    [
      'http in production',
      { ...upstream, UPSTREAM_ISSUER: 'http://localhost:1' },
      /UPSTREAM_ISSUER must be https/,
    ],
    [
      'scopes without openid',
      { ...upstream, UPSTREAM_SCOPES: 'profile' },
      /UPSTREAM_SCOPES must include openid/,
    ],
    [
      'a match by a value that is not stored',
      { ...upstream, UPSTREAM_MATCH: 'email' },
      /UPSTREAM_MATCH must be external_id, id/,
    ],
    [
      'the creation of members who are matched by local id',
      { ...upstream, UPSTREAM_MATCH: 'id', UPSTREAM_CREATE_MEMBERS: 'true' },
      /UPSTREAM_CREATE_MEMBERS cannot be true with UPSTREAM_MATCH=id/,
    ],
    [
      'a mail server without a sender',
      { SMTP_URL: 'smtp://mail.example' },
      /SMTP_URL and MAIL_FROM must be set together/,
    ],
    ['no sign-in method', { LOCAL_SIGN_IN: 'false' }, /LOCAL_SIGN_IN can be false only with UPSTREAM_ISSUER/],
  ])('for sign-in and email reject %s, and never print a secret', (_, settings, why) => {
    const refuse = () => loadConfig({ ...production, ...settings });
    expect(refuse).toThrow(why);
    expect(refuse).not.toThrow('hunter2');
  });

  it('are all read by the code', () => {
    const source = readFileSync('src/config/config.ts', 'utf8');
    for (const name of Object.keys(SETTINGS))
      expect(source).toMatch(new RegExp(`\\benv\\.${name}\\b|: '?${name}\\b`));
  });

  it.each(Object.entries(REMOVED_SETTINGS))(
    'reject %s, a setting of an earlier version: %s',
    (name, remedy) => {
      expect(() => loadConfig({ ...production, [name]: 'redis://cache:6379' })).toThrow(
        `A setting is wrong: ${name} no longer exists: ${remedy}`,
      );
    },
  );

  it('treat an empty variable as absent', () => {
    expect(loadConfig({ ...production, SUPPORT_URL: '', REDIS_URL: '', PORT: '' })).toMatchObject({
      supportUrl: undefined,
      port: 3000,
    });
  });

  it.each([
    ['400d', 400 * 86_400],
    ['7d', 7 * 86_400],
    ['168h', 7 * 86_400],
    ['0', 0],
    ['', 400 * 86_400],
  ])('accept AUDIT_RETENTION %p', (AUDIT_RETENTION, auditRetentionSeconds) =>
    expect(loadConfig({ ...production, AUDIT_RETENTION })).toMatchObject({ auditRetentionSeconds }),
  );

  it.each(['6d', '400', '1y', '-7d', '99999d'])('reject AUDIT_RETENTION %p', (AUDIT_RETENTION) =>
    expect(() => loadConfig({ ...production, AUDIT_RETENTION })).toThrow(/AUDIT_RETENTION must be .* 7d to/),
  );

  it.each(['https://api.example/path', 'https://api.example/', 'ftp://api.example', 'api.example'])(
    'reject a PUBLIC_URL that is not an http or https origin: %s',
    (PUBLIC_URL) => expect(() => loadConfig({ ...production, PUBLIC_URL })).toThrow('PUBLIC_URL'),
  );

  it.each([
    [{}],
    [{ PUBLIC_URL: 'http://127.0.0.1:3000', HOST: '127.0.0.2' }],
    [{ PUBLIC_URL: 'http://[::1]:3000', HOST: '::1' }],
    [{ PUBLIC_URL: 'https://localhost', HOST: 'localhost', SEED_DEMO: 'true' }],
  ])('seed the demo if PUBLIC_URL and HOST are loopback: %j', (environment) =>
    expect(loadConfig({ SECRET_KEY: SECRET, ...environment })).toMatchObject({
      loopbackOnly: true,
      seedDemo: true,
    }),
  );

  it.each([
    [{ PUBLIC_URL: 'https://api.example' }],
    [{ PUBLIC_URL: 'http://localhost.evil.example:3000' }],
    [{ PUBLIC_URL: 'http://127.0.0.1.nip.example' }],
    [{ PUBLIC_URL: 'http://10.0.0.1:3000' }],
    [{ HOST: '0.0.0.0' }],
    [{ HOST: '::' }],
    [{ HOST: '192.168.1.2' }],
    [{ HOST: 'api.example' }],
  ])('seed no demo if PUBLIC_URL or HOST is not loopback, and reject SEED_DEMO=true: %j', (environment) => {
    expect(loadConfig({ SECRET_KEY: SECRET, ...environment })).toMatchObject({
      loopbackOnly: false,
      seedDemo: false,
    });
    expect(() => loadConfig({ SECRET_KEY: SECRET, ...environment, SEED_DEMO: 'true' })).toThrow(
      /^A setting is wrong: SEED_DEMO can be true only if PUBLIC_URL and HOST are loopback/,
    );
  });

  describe('in production', () => {
    it('are accepted if they are complete and PUBLIC_URL is https or localhost', () => {
      expect(loadConfig(production)).toMatchObject({ production: true, host: '0.0.0.0', seedDemo: false });
      expect(loadConfig({ ...production, PUBLIC_URL: 'http://localhost:3000' }).production).toBe(true);
    });

    it.each([
      ['SECRET_KEY', { SECRET_KEY: '' }],
      ['DATABASE_URL', { DATABASE_URL: '' }],
      ['PUBLIC_URL', { PUBLIC_URL: 'http://api.example' }],
      ['SEED_DEMO', { SEED_DEMO: 'true' }],
    ])('are rejected if %s is missing or unsafe', (name, change) => {
      expect(() => loadConfig({ ...production, ...change })).toThrow(`A setting is wrong: ${name}`);
    });
  });
});
