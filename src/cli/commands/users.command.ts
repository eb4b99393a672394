import type { Command } from 'commander';
import { UsersService, type ListedUser } from '../../accounts/users.service.js';
import { SignInMethods } from '../../accounts/sign-in/sign-in-methods.js';
import { ConnectedApps } from '../../clients/connected-apps.js';
import { ClientsService } from '../../clients/clients.service.js';
import { parseEmail, parseHttpUrl, parsePasskeyId, parseUsername, textOf } from '../arguments.js';
import { addCommand, type Json } from '../command.js';
import { confirm } from '../confirm.js';
import { withDatabase, withDatabaseOfAnyVersion } from '../database.js';
import { LENGTHS, type Length } from '../../values/vocabulary.js';
import { fields, note, plain, print, table } from '../output.js';

/** Nobody reads more members than this. */
const MOST = 1000;

const atMost = ([, longest]: Length) => `at most ${longest} characters`;

interface CreateOptions extends Json {
  username: string;
  externalId?: string;
  email?: string;
  passwordStdin?: boolean;
  firstName?: string;
  lastName?: string;
  displayName?: string;
  bio?: string;
  profilePicture?: string;
}

interface SetPasswordOptions extends Json {
  keepSessions?: boolean;
}

/** Adds `pua users` and what it holds. */
export function usersCommands(program: Command): void {
  const users = program.command('users').description('Members');

  const create = addCommand(
    users,
    'create',
    'Create a member',
    'printf %s "$PASSWORD" | pua users create --username ada --first-name Ada --password-stdin',
  )
    .requiredOption(
      '--username <username>',
      'unique, ignoring case; must not consist of digits only',
      parseUsername,
    )
    .option(
      '--password-stdin',
      'read the password from stdin: 10 to 128 characters, and none of the most common passwords',
    );
  profileOptions(create).action(async (options: CreateOptions, command: Command) => {
    const password = options.passwordStdin ? await readPassword(command) : undefined;
    const user = await withDatabase(async ({ get }) => {
      const users = get(UsersService);
      const id = await users.create({ ...columnsOf(options), username: options.username, password }, 'admin');
      return users.find(String(id));
    });
    print(options.json, user, () => fields(user));
  });

  memberCommand(users, 'show', 'Show a member', 'pua users show ada').action(
    async (who: string, { json }: Json) => {
      const user = await withDatabase(({ get }) => get(UsersService).find(who));
      print(json, user, () => fields(user));
    },
  );

  addCommand(users, 'list', `List members, newest first, at most ${MOST}`, 'pua users list --search ada')
    .option(
      '--search <text>',
      'only members whose username or name contains this text, ignoring case',
      textOf([1, 100]),
    )
    .action(async ({ search, json }: Json & { search?: string }) => {
      const found = await withDatabase(({ get }) => get(UsersService).list(MOST + 1, search));
      const [shown, truncated] = [found.slice(0, MOST), found.length > MOST];
      print(json, { data: shown, truncated }, () => table(shown, COLUMNS));
      if (truncated) note('There are more: narrow it down with --search');
    });

  const update = memberCommand(
    users,
    'update',
    'Change a member’s account as the platform would; an import may change it again. "" clears a field',
    "pua users update ada --first-name Augusta --bio ''",
  );
  update.option(
    '--username <username>',
    'unique, ignoring case; must not consist of digits only',
    parseUsername,
  );
  profileOptions(update, { empty: true }).action(
    async (who: string, { json, ...options }: Omit<CreateOptions, 'passwordStdin'>, command: Command) => {
      if (Object.keys(options).length === 0)
        command.error('error: nothing to change: name at least one option');
      const absent = (text: string | undefined) => (text === '' ? null : text);
      const { changed, user } = await withDatabase(async ({ get }) => {
        const users = get(UsersService);
        const { id } = await users.find(who);
        const changed = await users.update(id, columnsOf(options, absent), 'admin');
        return { changed, user: await users.find(String(id)) };
      });
      if (changed.length === 0) note(`${user.username} already has these values: nothing changed`);
      print(json, user, () => fields(user));
    },
  );

  memberCommand(
    users,
    'set-password',
    'Set a member’s password, and end browser sessions, pending sign-ins, the access of apps, and calendar links; API keys stay valid',
    'printf %s "$PASSWORD" | pua users set-password ada --password-stdin',
  )
    .requiredOption(
      '--password-stdin',
      'read the password from stdin: 10 to 128 characters, and none of the most common passwords',
    )
    .option('--keep-sessions', 'end none of these')
    .action(async (who: string, { keepSessions, json }: SetPasswordOptions, command: Command) => {
      const password = await readPassword(command);
      const user = await withDatabase(async ({ get }) => {
        const users = get(UsersService);
        const found = await users.find(who);
        await users.setPassword(found.id, password, 'admin', { keepSessions });
        return found;
      });
      const { id, username } = user;
      const ended = keepSessions ? '' : ', and is signed out everywhere';
      print(json, { id, username, changed: true, sessions_kept: keepSessions === true }, () =>
        plain(`${username} has a new password${ended}`),
      );
    });

  memberCommand(users, 'passkeys', 'Show a member’s passkeys', 'pua users passkeys ada').action(
    async (who: string, { json }: Json) => {
      const passkeys = await withDatabase(async ({ get }) => {
        const { id } = await get(UsersService).find(who);
        return get(SignInMethods).listPasskeys(id);
      });
      print(json, { data: passkeys }, () =>
        table(passkeys, {
          ID: ({ id }) => id,
          NAME: ({ name }) => name,
          SYNCED: ({ synced }) => (synced ? 'yes' : 'no'),
          CREATED: ({ created_at }) => created_at,
          'LAST USED': ({ last_used_at }) => last_used_at,
        }),
      );
    },
  );

  memberCommand(
    users,
    'remove-passkey',
    'Remove a passkey that a member has lost, even the last one: a member without a password then needs one (`pua users set-password`). Sessions continue: `pua users revoke-access` ends them',
    'pua users remove-passkey ada 7',
  )
    .argument('<passkey>', 'id of the passkey, from `pua users passkeys`', parsePasskeyId)
    .action(async (who: string, passkeyId: number, { json }: Json) => {
      const { id, username } = await withDatabase(async ({ get }) => {
        const user = await get(UsersService).find(who);
        await get(SignInMethods).removeLostPasskey(user.id, passkeyId);
        return user;
      });
      print(json, { id, username, passkey: passkeyId, removed: true }, () =>
        plain(`Passkey ${passkeyId} of ${username} is removed`),
      );
    });

  memberCommand(
    users,
    'disable',
    'End all access to a member’s data, and omit the member from other members’ lists',
    'pua users disable ada',
  ).action((who: string, { json }: Json) => change(who, 'disable', json));

  memberCommand(users, 'enable', 'Enable a disabled member again', 'pua users enable ada').action(
    (who: string, { json }: Json) => change(who, 'enable', json),
  );

  addCommand(
    users,
    'erase',
    'Erase everything about a member except the id, permanently: profile, connections, RSVPs, achievements, keys, sessions, grants',
    'pua users erase ada --yes',
  )
    .alias('delete')
    .argument('<id|username>', 'the member')
    .option('--yes', 'skip the confirmation; this cannot be undone')
    .action(async (who: string, options: Json & { yes?: boolean }, command: Command) => {
      const { id, gone } = await withDatabase(async ({ get }) => {
        const users = get(UsersService);
        const user = await users.find(who);
        await confirm(
          command,
          options,
          `Everything about ${user.username} (id ${user.id}) would be erased permanently: the profile, ${user.connections_count} connections, ` +
            `the RSVPs to ${user.events_count} events, ${user.achievements_count} achievements, all API keys, sessions and grants.`,
        );
        return { id: user.id, gone: await users.erase(user.id, 'admin') };
      });
      if (!gone) note(`${id} was already erased: nothing changed`);
      print(options.json, { id, erased: gone ?? null }, () => `${id} is erased`);
    });

  memberCommand(
    users,
    'sessions',
    'Show where a member is signed in, and which apps have access to their data',
    'pua users sessions ada',
  ).action(async (who: string, { json }: Json) => {
    const { sessions, apps } = await withDatabase(async ({ get }) => {
      const { id } = await get(UsersService).find(who);
      const access = get(ConnectedApps);
      return { sessions: await access.listSessions(id), apps: await access.listApps(id) };
    });
    const result = {
      sessions: sessions.shown,
      sessions_count: sessions.count,
      apps: apps.shown,
      apps_count: apps.count,
    };
    print(json, result, () =>
      [
        table(sessions.shown, {
          'SIGNED IN': ({ signed_in_at }) => signed_in_at,
          'LAST SEEN': ({ last_seen_at }) => last_seen_at,
          ADDRESS: ({ ip }) => ip,
          BROWSER: ({ user_agent }) => user_agent,
        }),
        table(apps.shown, {
          APP: ({ client_id, client_name }) => `${client_id} ${client_name}`,
          SCOPES: ({ scopes }) => scopes,
          SINCE: ({ since }) => since,
          'LAST USED': ({ last_used_at }) => last_used_at,
        }),
      ].join('\n\n'),
    );
    for (const [name, { shown, count }] of Object.entries({ sessions, apps }))
      if (count > shown.length) note(`${count - shown.length} more ${name} are not shown`);
  });

  memberCommand(
    users,
    'revoke-access',
    'Revoke the access of apps to a member’s data, including unused authorization codes; without --client, end browser sessions and calendar links, too',
    'pua users revoke-access ada --client demo',
  )
    .option('--client <id>', 'revoke only the access of this app, and end no session')
    .action(async (who: string, { client, json }: Json & { client?: string }) => {
      const ended = await withDatabaseOfAnyVersion(async ({ get }) => {
        const { id, username } = await get(UsersService).identify(who);
        if (client !== undefined) await get(ClientsService).find(client);
        const access = get(ConnectedApps);
        const by = { actor: 'admin' } as const;
        const ended =
          client === undefined
            ? await access.revokeAll(id, by)
            : { grants: await access.revoke(id, client, by), sessions: 0 };
        return { id, username, ...ended };
      });
      print(json, ended, () =>
        plain(`${ended.username}: ${ended.grants} grants and ${ended.sessions} browser sessions ended`),
      );
    });
}

/** Adds a command about one member, who is its first argument. */
const memberCommand = (...parameters: Parameters<typeof addCommand>): Command =>
  addCommand(...parameters).argument('<id|username>', 'the member');

/** The columns that the options of {@link profileOptions} set. */
function columnsOf<Text = string>(
  options: Omit<CreateOptions, 'passwordStdin'>,
  read = (text: string | undefined) => text as Text | undefined,
) {
  return {
    username: options.username,
    external_id: read(options.externalId),
    email: read(options.email),
    first_name: read(options.firstName),
    last_name: read(options.lastName),
    display_name: read(options.displayName),
    bio: read(options.bio),
    profile_picture: read(options.profilePicture),
  };
}

/** Adds the options for a member's profile and external id. @param empty whether an empty text clears a field */
function profileOptions(command: Command, { empty = false } = {}): Command {
  const { external_id, first_name, last_name, stored_display_name, bio } = LENGTHS.users;
  const email = (text: string) => (empty && text === '' ? text : parseEmail(text));
  const url = (text: string) => (empty && text === '' ? text : parseHttpUrl(text));
  return command
    .option(
      '--external-id <id>',
      'id of the member in another system, such as the subject at the platform’s own login; unique',
      textOf([empty ? 0 : 1, external_id[1]]),
    )
    .option('--email <address>', 'where a link to set a new password is sent; no app sees it', email)
    .option('--first-name <text>', atMost(first_name), textOf(first_name))
    .option('--last-name <text>', atMost(last_name), textOf(last_name))
    .option(
      '--display-name <text>',
      'shown instead of first and last name',
      textOf([empty ? 0 : 1, stored_display_name[1]]),
    )
    .option('--bio <text>', atMost(bio), textOf(bio))
    .option('--profile-picture <url>', 'http or https', url);
}

const COLUMNS: Record<string, (user: ListedUser) => string | number | null> = {
  ID: ({ id }) => id,
  USERNAME: ({ username }) => username,
  NAME: ({ display_name }) => display_name,
  STATUS: ({ disabled_at, erased_at }) => (erased_at ? 'erased' : disabled_at ? 'disabled' : 'enabled'),
  PASSWORD: ({ has_password }) => (has_password ? 'yes' : 'no'),
  CREATED: ({ created_at }) => created_at,
};

async function change(who: string, verb: 'disable' | 'enable', json: boolean | undefined): Promise<void> {
  const reach = verb === 'disable' ? withDatabaseOfAnyVersion : withDatabase;
  const { changed, user } = await reach(async ({ get }) => {
    const users = get(UsersService);
    const { id } = await users.identify(who);
    const changed = await users[verb](id, 'admin');
    return { changed, user: await users.identify(String(id)) };
  });
  const { id, username, disabled_at } = user;
  if (!changed) note(`${username} was already ${verb}d: nothing changed`);
  print(json, { id, username, changed, disabled_at }, () => plain(`${username} is ${verb}d`));
}

/** Reads stdin, without a final line break: a password is never an argument, which others could see. */
async function readPassword(command: Command): Promise<string> {
  if (process.stdin.isTTY)
    command.error(
      'error: --password-stdin reads from a pipe, not from the terminal: printf %s "$PASSWORD" | pua users …',
    );
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > 10_000) break; // far longer than any password: it is refused for its length
  }
  return text.replace(/\r?\n$/, '');
}
