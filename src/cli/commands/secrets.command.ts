import type { Command } from '@commander-js/extra-typings';
import { SigningKeysService, type SigningKeyDetails } from '../../clients/signing-keys.service.js';
import { makeSecretKey } from '../../crypto/secrets.js';
import { addGroup } from '../command.js';
import { withDatabase } from '../database.js';
import { print, table } from '../output.js';

/** Adds `pua signing-keys` and what it holds. */
export function signingKeysCommands(program: Command): void {
  const add = addGroup(program, 'signing-keys', 'Keys that sign ID tokens');

  add('list', 'List signing keys, oldest first', 'pua signing-keys list').action(({ json }) =>
    show(json, (service) => service.list()),
  );

  add(
    'rotate',
    'Sign with the next key from now on; running servers follow within a second, and everything signed before stays valid',
    'pua signing-keys rotate',
  ).action(({ json }) => show(json, (service) => service.rotate()));
}

/** Adds `pua secrets` and what it holds. */
export function secretsCommands(program: Command): void {
  const add = addGroup(program, 'secrets', 'Secrets of the server');

  add(
    'generate',
    'Print a new random SECRET_KEY',
    'echo "SECRET_KEY=$(pua secrets generate)" >> .env',
  ).action(({ json }) => {
    const secret = makeSecretKey();
    print(json, { secret_key: secret }, () => secret);
  });
}

async function show(
  json: boolean | undefined,
  work: (service: SigningKeysService) => Promise<SigningKeyDetails[]>,
): Promise<void> {
  const keys = await withDatabase(({ get }) => work(get(SigningKeysService)));
  print(json, { data: keys }, () =>
    table(keys, {
      KID: ({ kid }) => kid,
      STATUS: ({ status }) => status,
      ALG: ({ alg }) => alg,
      CREATED: ({ created_at }) => created_at,
      ACTIVATED: ({ activated_at }) => activated_at,
      RETIRED: ({ retired_at }) => retired_at,
    }),
  );
}
