import type { Command } from 'commander';
import { makeSecretKey } from '../../crypto/secrets.js';
import { addCommand } from '../command.js';
import type { Json } from '../command.js';
import { print } from '../output.js';

/** Adds `pua secrets` and what it holds. */
export function secretsCommands(program: Command): void {
  const secrets = program.command('secrets').description('Secrets of the server');

  addCommand(
    secrets,
    'generate',
    'Print a new random SECRET_KEY',
    'echo "SECRET_KEY=$(pua secrets generate)" >> .env',
  ).action(({ json }: Json) => {
    const secret = makeSecretKey();
    print(json, { secret_key: secret }, () => secret);
  });
}
