import { Option } from 'commander';
import type { Command } from 'commander';
import { ApiKeysService, UnknownKey } from '../../auth/api-keys/api-keys.service.js';
import type { KeyDetails } from '../../auth/api-keys/api-keys.service.js';
import type { KeyEnvironment } from '../../auth/api-keys/api-key-format.js';
import { isPlatformScope } from '../../auth/scopes.js';
import type { PlatformScope, Scope } from '../../auth/scopes.js';
import { UsersService } from '../../accounts/users.service.js';
import { collectCidr, durationBetween, parseKeyScopes, textOf } from '../arguments.js';
import { addCommand, addGroup } from '../command.js';
import { withDatabase, withDatabaseOfAnyVersion } from '../database.js';
import { fields, note, print, table } from '../output.js';

const DAY = 86_400;
const DEFAULT_EXPIRY = 90 * DAY;
const LONGEST_EXPIRY = 365 * DAY;

interface CreateOptions {
  user?: string;
  platform?: boolean;
  name: string;
  scopes: (Scope | PlatformScope)[];
  expires?: number;
  /** false: --no-expiry */
  expiry: boolean;
  reason?: string;
  cidr?: string[];
  env: KeyEnvironment;
  json?: boolean;
}

interface ListOptions {
  user?: string;
  platform?: boolean;
  expiring?: number;
  json?: boolean;
}

/** Adds `pua keys` and what it holds. */
export function keysCommands(program: Command): void {
  const keys = addGroup(program, 'keys', 'API keys of members, and of the platform itself');

  addCommand(
    keys,
    'create',
    'Make a key. It is shown once: stdout has the key alone, with --json its details too',
    "pua keys create --user ada --name 'Ada’s calendar' --scopes profile:read,events:read",
  )
    .option('--user <id|username>', 'the member whose data the key opens')
    .addOption(
      new Option(
        '--platform',
        'in place of --user: a key of the platform itself, for its backend, with the scopes platform:read and platform:write',
      ).conflicts('user'),
    )
    .requiredOption('--name <text>', 'what the key is for', textOf([1, 100]))
    .requiredOption(
      '--scopes <list>',
      'what the key may do, comma separated; "" for nothing but /credential',
      parseKeyScopes,
    )
    .option(
      '--expires <duration>',
      'how long it is accepted: number and s, m, h or d, at most 365d (default: 90d)',
      durationBetween(1, LONGEST_EXPIRY),
    )
    .addOption(
      new Option('--no-expiry', 'accept it until it is revoked; needs --reason').conflicts('expires'),
    )
    .option('--reason <text>', 'why the key needs no end', textOf([1, 500]))
    .option(
      '--cidr <network...>',
      'accept it from these networks or addresses only, IPv4 or IPv6',
      collectCidr,
    )
    .addOption(
      new Option('--env <environment>', 'test keys are refused in production')
        .choices(['live', 'test'])
        .default('live'),
    )
    .action(async (options: CreateOptions, command: Command) => {
      if (!options.expiry && options.reason === undefined)
        command.error('error: --no-expiry needs --reason <text>: say why the key needs no end');
      if (options.expiry && options.reason !== undefined)
        command.error('error: --reason belongs to --no-expiry: leave it out, or add --no-expiry');
      const { platform: ofPlatform = false, scopes } = options;
      if (!ofPlatform && options.user === undefined)
        command.error('error: name a member with --user, or say --platform');
      if (scopes.some((scope) => isPlatformScope(scope) !== ofPlatform))
        command.error(
          'error: platform:read and platform:write are for --platform, and the others for --user',
        );
      if (ofPlatform && scopes.length === 0) command.error('error: a key of the platform needs a scope');
      await withDatabase(async ({ config, dataSource }) => {
        const user =
          options.user === undefined ? undefined : await new UsersService(dataSource).find(options.user);
        const keys = new ApiKeysService(dataSource, config);
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
        if (user?.disabled_at) note(`${user.username} is disabled: the key works once they are enabled`);
        await printNew(keys, key, id, options.json);
        if (!options.json)
          note(
            ofPlatform
              ? `Use it: export API_KEY=<the key>; the calls that it opens stand in ${config.publicUrl}/docs#platform`
              : `Use it: export API_KEY=<the key>; curl -H "X-API-Key: $API_KEY" ${config.publicUrl}/api/public/credential`,
          );
      });
    });

  addCommand(keys, 'list', 'List keys, the newest first', 'pua keys list --user ada')
    .option('--user <id|username>', 'only the keys of this member')
    .addOption(new Option('--platform', 'only the keys of the platform itself').conflicts('user'))
    .option(
      '--expiring <duration>',
      'only those that end within this time and were not rotated, the first to end first: number and s, m, h or d',
      durationBetween(1, LONGEST_EXPIRY),
    )
    .action(async ({ user, platform, expiring, json }: ListOptions) => {
      const found = await withDatabase(async ({ config, dataSource }) => {
        const userId = user === undefined ? undefined : (await new UsersService(dataSource).find(user)).id;
        return new ApiKeysService(dataSource, config).list({
          userId,
          ofPlatform: platform,
          expiringWithin: expiring,
        });
      });
      print(json, { data: found }, () => table(found, COLUMNS));
    });

  addCommand(keys, 'show', 'Show all that is known of a key', 'pua keys show 4fGh7Kq2LmPz')
    .argument('<id>', 'id of the key: the 12 characters after pua_live_')
    .action(async (id: string, { json }: { json?: boolean }) => {
      const key = await withDatabase(({ config, dataSource }) =>
        new ApiKeysService(dataSource, config).find(id),
      );
      if (!key) throw new UnknownKey(id);
      print(json, key, () => fields(key));
    });

  addCommand(
    keys,
    'rotate',
    'Make a key in place of this one, which is accepted for a while longer. stdout has the new key alone',
    'pua keys rotate 4fGh7Kq2LmPz --overlap 2h',
  )
    .argument('<id>', 'id of the key to replace')
    .addOption(
      new Option(
        '--overlap <duration>',
        'how long the old key is still accepted, at most until its own expiry; 0s ends it at once',
      )
        .argParser(durationBetween(0, LONGEST_EXPIRY))
        .default(DAY, '24h'),
    )
    .action(async (old: string, { overlap, json }: { overlap: number; json?: boolean }) => {
      await withDatabase(async ({ config, dataSource }) => {
        const keys = new ApiKeysService(dataSource, config);
        const { key, id } = await keys.rotate(old, overlap, 'admin');
        note(`${old} is accepted until ${(await keys.find(old))!.expires_at} UTC`);
        await printNew(keys, key, id, json);
      });
    });

  addCommand(
    keys,
    'revoke',
    'End a key at once and for good. Where it was revoked before, nothing changes',
    "pua keys revoke 4fGh7Kq2LmPz --reason 'found in a public repository'",
  )
    .argument('<id>', 'id of the key')
    .requiredOption('--reason <text>', 'why; kept with the key', textOf([1, 500]))
    .action(async (id: string, { reason, json }: { reason: string; json?: boolean }) => {
      await withDatabaseOfAnyVersion(async ({ config, dataSource }) => {
        const keys = new ApiKeysService(dataSource, config);
        const changed = await keys.revoke(id, reason, 'admin');
        const key = (await keys.find(id))!;
        if (!changed) note(`${id} was revoked before, at ${key.revoked_at} UTC: ${key.revocation_reason}`);
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

async function printNew(
  keys: ApiKeysService,
  key: string,
  id: string,
  json: boolean | undefined,
): Promise<void> {
  const details = json ? await keys.find(id) : undefined;
  print(json, { ...details, key }, () => key);
}
