import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { profileAt, type ServerProcess } from './server.js';
import { until } from './timing.js';

/** The commands of a page under a heading, one string per block. */
export function commandsOf(path: string, heading: string): string[] {
  const page = readFileSync(path, 'utf8');
  const section = page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`));
  const found = [...(section ?? '').matchAll(/```bash\n([^]*?)```/g)].map(([, commands]) => commands!);
  if (found.length === 0) throw new Error(`${path} has no commands under ${heading}`);
  return found;
}

/** Runs commands like an operator's shell. */
export async function runCommands(
  commands: string,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
    env: {
      ...environment,
      PATH: `${join('node_modules', 'node', 'bin')}:${process.env.PATH}`,
      HOME: tmpdir(),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [printed, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  if (code !== 0) throw new Error(`${commands} ended with ${code}: ${errors}`);
  return printed;
}

export async function query<Row>(url: string, sql: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined); // the failing statement reports the error
  await client.connect();
  try {
    return (await client.query(sql, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

/** The status of a request with a key; repeats it while a server that has just started responds 503. */
export async function statusOf(server: ServerProcess, key: string): Promise<number> {
  let status = 503;
  await until(async () => {
    const answer = await profileAt(server.url, key);
    await answer.arrayBuffer();
    return (status = answer.status) !== 503;
  }, 'the server answers');
  return status;
}
