import { Option, type Command } from '@commander-js/extra-typings';
import { ApiKeysService, UnknownKey, type KeyDetails } from '../../auth/api-keys/api-keys.service.js';
import { isPlatformScope } from '../../auth/scopes.js';
import { UsersService } from '../../accounts/users.service.js';
import { collectCidr, durationBetween, parseKeyScopes, parseName, textOf } from '../arguments.js';
import { addGroup } from '../command.js';
import { confirmOnTerminal } from '../confirm.js';
import { withDatabase, withDatabaseOfAnyVersion } from '../database.js';
import { fields, note, print, table } from '../output.js';

const DAY = 86_400;
const DEFAULT_EXPIRY = 90 * DAY;
const LONGEST_EXPIRY = 365 * DAY;

/** Adds `pua keys` and what it holds. */
export function keysCommands(program: Command): void {
  const add = addGroup(program, 'keys', 'API keys of members, and of the platform');

  add(
    'create',
    'Create a key. It is shown only once: stdout has only the key, or with --json also its details',
    "pua keys create --user ada --name 'Ada’s calendar' --scopes profile:read,events:read",
  )
    .option('--user <id|username>', 'the member whose data the key opens')
    .addOption(
      new Option(
        '--platform',
        'instead of --user: a key for the platform’s own backend, with the scopes platform:read and platform:write',
      ).conflicts('user'),
    )
    .requiredOption('--name <text>', 'what the key is for', parseName)
    .requiredOption(
      '--scopes <list>',
      'scopes of the key, comma separated; with "", it opens /credential only',
      parseKeyScopes,
    )
    .option(
      '--expires <duration>',
      'how long it is valid: a number followed by s, m, h or d, at most 365d (default: 90d)',
      durationBetween(1, LONGEST_EXPIRY),
    )
    .addOption(new Option('--no-expiry', 'valid until it is revoked; requires --reason').conflicts('expires'))
    .option('--reason <text>', 'why the key needs no expiry', textOf([1, 500]))
    .option(
      '--cidr <network...>',
      'accept it only from these networks or addresses (IPv4 or IPv6)',
      collectCidr,
    )
    .addOption(
      new Option('--env <environment>', 'test keys are refused in production')
        .choices(['live', 'test'])
        .default('live'),
    )
    .action(async (options, command) => {
      if (!options.expiry && options.reason === undefined)
        command.error('error: --no-expiry requires --reason <text>: say why the key needs no expiry');
      if (options.expiry && options.reason !== undefined)
        command.error('error: --reason is only for --no-expiry: leave it out, or add --no-expiry');
      const { platform: ofPlatform = false, scopes, json } = options;
      if (!ofPlatform && options.user === undefined)
        command.error('error: name a member with --user, or use --platform');
      if (scopes.some((scope) => isPlatformScope(scope) !== ofPlatform))
        command.error(
          'error: platform:read and platform:write are only for --platform, all other scopes only for --user',
        );
      if (ofPlatform && scopes.length === 0)
        command.error('error: a key of the platform needs at least one scope');
      await withDatabase(async ({ config, get }) => {
        const user = options.user === undefined ? undefined : await get(UsersService).find(options.user);
        const keys = get(ApiKeysService);
        const { key, id } = await keys.create({
          userId: user?.id ?? null,
          name: options.name,
          scopes: options.scopes,
          environment: options.env,
          cidrs: options.cidr ?? [],
          ...(options.expiry
            ? { expiresInSeconds: options.expires ?? DEFAULT_EXPIRY }
            : { noExpiryReason: options.reason! }),
          actor: 'admin',
        });
        if (user?.disabled_at)
          note(`${user.username} is disabled: the key will not work until they are enabled`);
        print(json, json ? { ...(await keys.find(id)), key } : undefined, () => key);
        if (!json)
          note(
            ofPlatform
              ? `Use it: export API_KEY=<the key>; ${config.publicUrl}/docs#platform lists the calls that it opens`
              : `Use it: export API_KEY=<the key>; curl -H "X-API-Key: $API_KEY" ${config.publicUrl}/api/public/credential`,
          );
      });
    });

  add('list', 'List keys, newest first', 'pua keys list --user ada')
    .option('--user <id|username>', 'only keys of this member')
    .addOption(new Option('--platform', 'only keys of the platform').conflicts('user'))
    .option(
      '--expiring <duration>',
      'only keys that expire within this time and have not been rotated, soonest first: a number followed by s, m, h or d',
      durationBetween(1, LONGEST_EXPIRY),
    )
    .action(async ({ user, platform, expiring, json }) => {
      const found = await withDatabase(async ({ get }) => {
        const userId = user === undefined ? undefined : (await get(UsersService).find(user)).id;
        return get(ApiKeysService).list({
          userId,
          ofPlatform: platform,
          expiringWithin: expiring,
        });
      });
      print(json, { data: found }, () => table(found, COLUMNS));
    });

  add('show', 'Show everything about a key except the key itself', 'pua keys show 4fGh7Kq2LmPz')
    .argument('<id>', 'id of the key: the 12 characters after pua_live_')
    .action(async (id, { json }) => {
      const key = await withDatabase(({ get }) => get(ApiKeysService).find(id));
      if (!key) throw new UnknownKey(id);
      print(json, key, () => fields(key));
    });

  add(
    'rotate',
    'Create a key that replaces this one, which stays valid for a while. stdout has only the new key',
    'pua keys rotate 4fGh7Kq2LmPz --overlap 2h',
  )
    .argument('<id>', 'id of the key to replace')
    .addOption(
      new Option(
        '--overlap <duration>',
        'how long the old key stays valid, at most until it expires; with 0s, it ends at once',
      )
        .argParser(durationBetween(0, LONGEST_EXPIRY))
        .default(DAY, '24h'),
    )
    .action(async (old, { overlap, json }) => {
      await withDatabase(async ({ get }) => {
        const keys = get(ApiKeysService);
        const { key, id } = await keys.rotate(old, overlap, 'admin');
        note(`${old} stays valid until ${(await keys.find(old))!.expires_at} UTC`);
        print(json, json ? { ...(await keys.find(id)), key } : undefined, () => key);
      });
    });

  add(
    'revoke',
    'Revoke a key at once and permanently. If it is already revoked, nothing changes',
    "pua keys revoke 4fGh7Kq2LmPz --reason 'found in a public repository'",
  )
    .argument('<id>', 'id of the key')
    .requiredOption('--reason <text>', 'why it is revoked; stored with the key', textOf([1, 500]))
    .option('--yes', 'skip the confirmation, which only a terminal asks for; this cannot be undone')
    .action(async (id, options, command) => {
      const { reason, json } = options;
      await confirmOnTerminal(command, options, `The key ${id} would be revoked at once and permanently.`);
      await withDatabaseOfAnyVersion(async ({ get }) => {
        const keys = get(ApiKeysService);
        const changed = await keys.revoke(id, reason, 'admin');
        const key = (await keys.find(id))!;
        if (!changed) note(`${id} was already revoked at ${key.revoked_at} UTC: ${key.revocation_reason}`);
        print(json, { id, changed, revoked_at: key.revoked_at, reason: key.revocation_reason }, () => id);
      });
    });
}

const COLUMNS: Record<string, (key: KeyDetails) => string | null | readonly string[]> = {
  ID: ({ id }) => id,
  USER: ({ user_id, username }) => (user_id === null ? 'platform' : `${user_id} ${username}`),
  NAME: ({ name }) => name,
  ENV: ({ environment }) => environment,
  SCOPES: ({ scopes }) => scopes,
  STATUS: ({ status }) => status,
  EXPIRES: ({ expires_at }) => expires_at ?? 'never',
  'LAST USED': ({ last_used_at }) => last_used_at,
  EXPOSED: ({ exposed_at }) => exposed_at,
};
