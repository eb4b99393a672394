import type { Config } from '../../config/config.js';
import { DEMO_PASSWORD, DEMO_USERNAMES } from './demo-data.js';

export interface WelcomeFacts {
  /** Of the first demo member; only at the start that made it. */
  readonly key: string | undefined;
  readonly demo: boolean;
  readonly embedded: boolean;
}

/** What a developer sees when the server is ready. Never printed in production. */
export function welcome(config: Config, { key, demo, embedded }: WelcomeFacts): string {
  const { publicUrl } = config;
  const lines = [
    ['API', `${publicUrl}/api/public`],
    ['Docs', `${publicUrl}/docs`],
    ['OAuth', `${publicUrl}/.well-known/oauth-authorization-server`],
    ['Database', embedded ? `embedded, in ${config.dataDir}` : 'PostgreSQL (DATABASE_URL)'],
  ];
  if (demo) {
    lines.push(
      ['Demo', `${publicUrl}/demo`],
      ['Members', `${DEMO_USERNAMES.join(', ')} (password: ${DEMO_PASSWORD})`],
      [
        'Test key',
        key
          ? `${key} (shown once)`
          : `npx pua keys create --user ${DEMO_USERNAMES[0]} --name demo --env test --scopes profile:read,events:read`,
      ],
    );
  }
  const text = lines.map(([name, value]) => `  ${name!.padEnd(9)} ${value}`).join('\n');
  const curl = key ? `\n\n  curl -H 'X-API-Key: ${key}' ${publicUrl}/api/public/profile` : '';
  return `\nPublic User API is ready.\n\n${text}${curl}\n`;
}
