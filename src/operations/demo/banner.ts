import type { Config } from '../../config/config.js';
import { styled } from '../../http/terminal.js';
import { DEMO_PASSWORD, DEMO_USERNAMES } from './demo-data.js';

/** What the demo offers. */
export interface DemoFacts {
  /** A test key of the first demo member; undefined if that member is missing or disabled. */
  readonly key: string | undefined;
  /** Usernames of members who can sign in with the demo's password. */
  readonly members: readonly string[];
}

/** Returns the line printed first, since the start takes a moment. Never printed in production. */
export function beginning(config: Config): string {
  return `Starting on ${databaseOf(config)} …`;
}

/** Returns what a developer sees once the server is ready. Never printed in production. */
export function banner(config: Config, demo: DemoFacts | undefined): string {
  const { publicUrl } = config;
  const { key, members = [] } = demo ?? {};
  const named = DEMO_USERNAMES.filter((username) => members.includes(username));
  const lines = [
    ['Front page', `${publicUrl}/`],
    ['API', `${publicUrl}/api/public`],
    ['Docs', `${publicUrl}/docs`],
    ['OAuth', `${publicUrl}/.well-known/oauth-authorization-server`],
    ['Account', `${publicUrl}/account/apps`],
    ...(demo ? [['Demo', `${publicUrl}/demo`]] : []),
    ...(demo || config.loopbackOnly
      ? []
      : [['Demo', 'none where others can reach the server: PUBLIC_URL or HOST is not loopback']]),
    ...(named.length > 0 ? [['Members', `${named.join(', ')} (password: ${DEMO_PASSWORD})`]] : []),
    ['Database', databaseOf(config)],
  ].map(([name, value]) => `  ${styled('bold', name!.padEnd(10))} ${value}`);
  const call = key
    ? `\n\nA call as ${named[0] ?? 'the first demo member'}:\n\n` +
      `  export API_KEY=${key}\n  curl -H "X-API-Key: $API_KEY" ${publicUrl}/api/public/profile`
    : '';
  return `\n${styled('green', 'Public User API is ready.')}\n\n${lines.join('\n')}${call}\n\nCtrl-C ends it.\n`;
}

const databaseOf = ({ databaseUrl, dataDir }: Config) =>
  databaseUrl === undefined ? `the embedded database in ${dataDir}` : 'PostgreSQL (DATABASE_URL)';
