import type { Command } from 'commander';
import { makeSecretKey } from '../../crypto/secrets.js';
import { addCommand, addGroup } from '../command.js';
import { print } from '../output.js';

/** Adds `pua secrets` and what it holds. */
export function secretsCommands(program: Command): void {
  const secrets = addGroup(program, 'secrets', 'Secrets of the server');

  addCommand(
    secrets,
    'generate',
    'Print a new random SECRET_KEY',
    'echo "SECRET_KEY=$(pua secrets generate)" >> .env',
  ).action(({ json }: { json?: boolean }) => {
    const secret = makeSecretKey();
    print(json, { secret_key: secret }, () => secret);
  });
}
