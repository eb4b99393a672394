import { Option, type Command } from '@commander-js/extra-typings';
import { ApiKeysService, UnknownKey, type KeyDetails } from '../../auth/api-keys/api-keys.service.js';
import { isPlatformScope } from '../../auth/scopes.js';
import { UsersService } from '../../accounts/users.service.js';
import { SigningKeysService } from '../../clients/signing-keys.service.js';
import { makeSecretKey } from '../../crypto/secrets.js';
import {
  collectCidr,
  durationBetween,
  overlapOption,
  parseDuration,
  parseKeyId,
  parseKeyScopes,
  parseName,
  textArgument,
} from '../arguments.js';
import { addTo } from '../command.js';
import { fields, named, note, print, table, withDetails } from '../output.js';

/** Adds `pua keys` and its commands. */
export function keysCommands(group: Command): void {
  const add = addTo(group);

  add(
    'create',
    'Create a key. It is shown only once: stdout has only the key; with --json, also its details',
    "pua keys create --user ada --name 'Ada’s calendar' --scopes profile:read,events:read",
  )
    .option('--user <id|username>', 'the member whose data the key can access')
    .addOption(
      new Option(
        '--platform',
        'create a key for the platform’s own backend, with platform:read, platform:write or both',
      ).conflicts('user'),
    )
    .requiredOption('--name <text>', 'what the key is for', parseName)
    .requiredOption(
      '--scopes <list>',
      'scopes of the key, comma separated; with "", the key can read only /credential',
      parseKeyScopes,
    )
    .option(
      '--expires <duration>',
      'how long the key is valid, at most 365d (default: 90d)',
      durationBetween('1s', '365d'),
    )
    .addOption(new Option('--no-expiry', 'valid until it is revoked; requires --reason').conflicts('expires'))
    .option('--reason <text>', 'why the key needs no expiry', textArgument([1, 500]))
    .option(
      '--cidr <network...>',
      'accept the key only from these networks or addresses (IPv4 or IPv6)',
      collectCidr,
    )
    .addOption(
      new Option(
        '--env <environment>',
        'kind of key; production rejects test keys (default: live in production, else test)',
      ).choices(['live', 'test']),
    )
    .refuses(({ expiry, reason, platform = false, user, scopes }) => {
      if (!expiry && reason === undefined)
        return '--no-expiry requires --reason <text>: say why the key needs no expiry';
      if (expiry && reason !== undefined)
        return '--reason is only for --no-expiry: leave it out, or add --no-expiry';
      if (!platform && user === undefined) return 'name a member with --user, or use --platform';
      if (scopes.some((scope) => isPlatformScope(scope) !== platform))
        return 'platform:read and platform:write are only for --platform, all other scopes only for --user';
      return platform && scopes.length === 0 && 'a key of the platform needs at least one scope';
    })
    .runs(async ({ config, get, print }, options) => {
      const user = options.user === undefined ? undefined : await get(UsersService).find(options.user);
      const keys = get(ApiKeysService);
      const { key, id } = await keys.create({
        userId: user?.id ?? null,
        name: options.name,
        scopes: options.scopes,
        environment: options.env ?? (config.production ? 'live' : 'test'),
        cidrs: options.cidr ?? [],
        ...(options.expiry
          ? { expiresInSeconds: options.expires ?? parseDuration('90d') }
          : { noExpiryReason: options.reason! }),
        actor: 'admin',
      });
      if (user?.disabled_at)
        note(`${user.username} is disabled: the key will not work until they are enabled`);
      print(await withDetails(keys.find(id), { id, key }), () => key);
      if (!options.json)
        note(
          options.platform
            ? `Use it: export API_KEY=<the key>; ${config.publicUrl}/docs#platform lists its requests`
            : `Use it: export API_KEY=<the key>; curl -H "X-API-Key: $API_KEY" ${config.publicUrl}/api/public/credential`,
        );
    });

  add('list', 'List keys, newest first', 'pua keys list --user ada')
    .option('--user <id|username>', 'only keys of this member')
    .addOption(new Option('--platform', 'only keys of the platform').conflicts('user'))
    .option(
      '--expiring, --ending <duration>',
      'only keys that expire within this time and have not been rotated, soonest first',
      durationBetween('1s', '365d'),
    )
    .runs(async ({ get, print }, { user, platform, ending }) => {
      const userId = user === undefined ? undefined : (await get(UsersService).find(user)).id;
      const data = await get(ApiKeysService).list({
        userId,
        ofPlatform: platform,
        expiringWithin: ending,
      });
      print({ data }, () => table(data, COLUMNS));
    });

  add('show', 'Show everything about a key except the key itself', 'pua keys show 4fGh7Kq2LmPz')
    .argument('<id>', 'the 12 characters after pua_live_ or pua_test_, or the whole key', parseKeyId)
    .runs(async ({ get, print }, id) => {
      const key = await get(ApiKeysService).find(id);
      if (!key) throw new UnknownKey(id);
      print(key, fields);
    });

  add(
    'rotate',
    'Create a key that replaces another one, which stays valid for a while. stdout contains only the new key',
    'pua keys rotate 4fGh7Kq2LmPz --overlap 2h',
  )
    .argument('<id>', 'id of the key to replace, or the whole key', parseKeyId)
    .addOption(overlapOption('the old key stays valid, at most until it expires; 0s: not at all', '365d'))
    .runs(async ({ get, print }, old, { overlap }) => {
      const keys = get(ApiKeysService);
      const { key, id } = await keys.rotate(old, overlap, 'admin');
      note(`${old} is valid until ${(await keys.find(old))!.expires_at} UTC`);
      print(await withDetails(keys.find(id), { id, key }), () => key);
    });

  add(
    'revoke',
    'Revoke a key at once and permanently. If it is already revoked, nothing changes',
    "pua keys revoke 4fGh7Kq2LmPz --reason 'found in a public repository'",
    'any version',
  )
    .argument('<id>', 'id of the key, or the whole key', parseKeyId)
    .requiredOption('--reason <text>', 'why it is revoked; stored with the key', textArgument([1, 500]))
    .option('--yes', 'skip the confirmation')
    .runs(async ({ get, print, confirm }, id, { reason }) => {
      await confirm(`The key ${id} would be revoked at once and permanently.`, 'go on');
      const keys = get(ApiKeysService);
      const changed = await keys.revoke(id, reason, 'admin');
      const key = (await keys.find(id))!;
      if (!changed) note(`${id} was already revoked at ${key.revoked_at} UTC: ${key.revocation_reason}`);
      print({ id, changed, revoked_at: key.revoked_at, reason: key.revocation_reason }, () => id);
    });
}

const COLUMNS: Record<string, (key: KeyDetails) => string | null | readonly string[]> = {
  ID: ({ id }) => id,
  USER: ({ user_id, username }) => (user_id === null ? 'platform' : `${user_id} ${username}`),
  NAME: ({ name }) => name,
  ENV: ({ environment }) => environment,
  ...named('scopes', 'status'),
  EXPIRES: ({ expires_at }) => expires_at ?? 'never',
  ...named('last_used_at', 'exposed_at'),
};

const SIGNING_KEY_COLUMNS = named('kid', 'status', 'alg', 'created_at', 'activated_at', 'retired_at');

/** Adds `pua signing-keys` and its commands. */
export function signingKeysCommands(group: Command): void {
  const add = addTo(group);

  add('list', 'List signing keys, oldest first', 'pua signing-keys list').runs(async ({ get, print }) =>
    print({ data: await get(SigningKeysService).list() }, ({ data }) => table(data, SIGNING_KEY_COLUMNS)),
  );

  add(
    'rotate',
    'Sign with the next key; running servers switch to it within a second. Earlier signatures stay valid until the next rotation',
    'pua signing-keys rotate',
  ).runs(async ({ get, print }) =>
    print({ data: await get(SigningKeysService).rotate() }, ({ data }) => table(data, SIGNING_KEY_COLUMNS)),
  );
}

/** Adds `pua secrets` and its commands. */
export function secretsCommands(group: Command): void {
  const add = addTo(group);

  add(
    'generate',
    'Print a new random SECRET_KEY',
    'echo "SECRET_KEY=$(pua secrets generate)" >> .env',
  ).action(({ json }) => {
    const secret = makeSecretKey();
    print(json, { secret_key: secret }, () => secret);
  });
}
