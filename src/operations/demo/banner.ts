import type { Config } from '../../config/config.js';
import { DEMO_PASSWORD, DEMO_USERNAMES } from './demo-data.js';

/** What there is of the demo. */
export interface DemoFacts {
  /** A test key of the first demo member; undefined where that member is gone or disabled. */
  readonly key: string | undefined;
  /** Usernames of those who can sign in with the demo's password. */
  readonly members: readonly string[];
}

/** What a developer sees at every start, when the server is ready. Never printed in production. */
export function banner(config: Config, demo: DemoFacts | undefined): string {
  const { publicUrl } = config;
  const lines = [
    ['API', `${publicUrl}/api/public`],
    ['Docs', `${publicUrl}/docs`],
    ['OAuth', `${publicUrl}/.well-known/oauth-authorization-server`],
    ['Account', `${publicUrl}/account/apps`],
    [
      'Database',
      config.databaseUrl === undefined ? `embedded, in ${config.dataDir}` : 'PostgreSQL (DATABASE_URL)',
    ],
  ];
  const { key, members = [] } = demo ?? {};
  const named = DEMO_USERNAMES.filter((username) => members.includes(username));
  if (demo) lines.push(['Demo', `${publicUrl}/demo`]);
  else if (!config.loopbackOnly)
    lines.push(['Demo', 'none where others can reach the server: PUBLIC_URL or HOST is not loopback']);
  if (named.length > 0) lines.push(['Members', `${named.join(', ')} (password: ${DEMO_PASSWORD})`]);
  if (key) lines.push(['Test key', key]);
  const text = lines.map(([name, value]) => `  ${name!.padEnd(9)} ${value}`).join('\n');
  const curl = key ? `\n\n  curl -H 'X-API-Key: ${key}' ${publicUrl}/api/public/profile` : '';
  return `\nPublic User API is ready.\n\n${text}${curl}\n`;
}
