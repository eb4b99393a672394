import type { Command, OptionValues } from '@commander-js/extra-typings';
import { eraseMembers } from '../../accounts/erasure.js';
import { UsersService, type ListedUser } from '../../accounts/users.service.js';
import { SignInMethods } from '../../accounts/sign-in/sign-in-methods.js';
import { ConnectedApps } from '../../clients/connected-apps.js';
import { ClientsService } from '../../clients/clients.service.js';
import { parseEmail, parseHttpUrl, parseNumber, parseUsername, textArgument } from '../arguments.js';
import { addTo, changesNothing } from '../command.js';
import { LENGTHS, type Length } from '../../values/vocabulary.js';
import { fields, named, note, plain, table } from '../output.js';

const MOST = 1000;

const atMost = ([, longest]: Length) => `at most ${longest} characters`;

/** Adds `pua users` and its commands. */
export function usersCommands(group: Command): void {
  const add = addTo(group);
  const ofMember = (...command: Parameters<typeof add>) =>
    add(...command).argument('<id|username>', 'the member');

  const create = add(
    'create',
    'Create a member',
    'printf %s "$PASSWORD" | pua users create --username ada --first-name Ada --password-stdin',
  )
    .requiredOption(
      '--username <username>',
      'unique, ignoring case; must not consist of digits only',
      parseUsername,
    )
    .option('--password-stdin', 'read the password from stdin: 10 to 128 characters, no common password');
  profileOptions(create)
    .refuses(({ passwordStdin }) => passwordStdin && process.stdin.isTTY && NO_PIPE)
    .runs(async ({ get, print }, options) => {
      const password = options.passwordStdin ? await readPassword() : undefined;
      const users = get(UsersService);
      const id = await users.create({ ...columnsOf(options), username: options.username, password }, 'admin');
      print(await users.find(String(id)), fields);
    });

  ofMember('show', 'Show a member', 'pua users show ada').runs(async ({ get, print }, who) =>
    print(await get(UsersService).find(who), fields),
  );

  add('list', `List members, highest id first, ${MOST} at a time`, 'pua users list --search ada')
    .option(
      '--search <text>',
      'only members whose username or name contains this text, ignoring case',
      textArgument([1, 100]),
    )
    .option('--before <id>', 'only members with a lower id, to continue a list', parseNumber)
    .runs(async ({ get, print }, { search, before }) => {
      const found = await get(UsersService).list(MOST + 1, { search, before });
      const truncated = found.length > MOST;
      print({ data: found.slice(0, MOST), truncated }, ({ data }) => table(data, COLUMNS));
      if (truncated)
        note(
          `There are more members: continue with --before ${found[MOST - 1]!.id}, or narrow the list down with --search`,
        );
    });

  const update = ofMember(
    'update',
    'Change a member’s account; a later import or feed can overwrite the change. "" clears a field',
    "pua users update ada --first-name Augusta --bio ''",
  ).option('--username <username>', 'unique, ignoring case; must not consist of digits only', parseUsername);
  profileOptions(update, { empty: true })
    .refuses(changesNothing)
    .runs(async ({ get, print }, who, options) => {
      const users = get(UsersService);
      const { id } = await users.find(who);
      const changed = await users.update(
        id,
        { ...columnsOf(options, (text) => (text === '' ? null : text)), username: options.username },
        'admin',
      );
      const user = await users.find(String(id));
      if (changed.length === 0) note(`${user.username} already has these values: nothing changed`);
      print(user, fields);
    });

  ofMember(
    'set-password',
    'Set a member’s password, and end sessions, pending sign-ins, apps’ access and calendar links; API keys stay valid',
    'printf %s "$PASSWORD" | pua users set-password ada --password-stdin',
  )
    .requiredOption(
      '--password-stdin',
      'read the password from stdin: 10 to 128 characters, no common password',
    )
    .option('--keep-sessions', 'keep sessions, pending sign-ins, apps’ access and calendar links')
    .refuses(() => process.stdin.isTTY && NO_PIPE)
    .runs(async ({ get, print }, who, { keepSessions = false }) => {
      const password = await readPassword();
      const users = get(UsersService);
      const { id, username } = await users.find(who);
      await users.setPassword(id, password, 'admin', { keepSessions });
      const ended = keepSessions ? '' : ', and all sessions have ended';
      print({ id, username, changed: true, sessions_kept: keepSessions }, () =>
        plain(`${username} has a new password${ended}`),
      );
    });

  ofMember('passkeys', 'Show a member’s passkeys', 'pua users passkeys ada').runs(
    async ({ get, print }, who) => {
      const { id } = await get(UsersService).find(who);
      const data = await get(SignInMethods).listPasskeys(id);
      print({ data }, () =>
        table(data, {
          ...named('id', 'name'),
          SYNCED: ({ synced }) => (synced ? 'yes' : 'no'),
          ...named('created_at', 'last_used_at'),
        }),
      );
    },
  );

  ofMember(
    'remove-passkey',
    'Remove a passkey, even the last one. If the member has no password, set one (`pua users set-password`). Sessions continue',
    'pua users remove-passkey ada 7',
  )
    .argument('<passkey>', 'id of the passkey, from `pua users passkeys`', parseNumber)
    .runs(async ({ get, print }, who, passkey) => {
      const { id, username } = await get(UsersService).find(who);
      await get(SignInMethods).removeLostPasskey(id, passkey);
      print({ id, username, passkey, removed: true }, () =>
        plain(`Passkey ${passkey} of ${username} is removed`),
      );
    });

  for (const [verb, accepted, description] of [
    [
      'disable',
      'any version',
      'Block all access to a member’s data, and omit the member from other members’ lists',
    ],
    ['enable', 'this version', 'Enable a disabled member again'],
  ] as const)
    ofMember(verb, description, `pua users ${verb} ada`, accepted).runs(async ({ get, print }, who) => {
      const users = get(UsersService);
      const { id, username } = await users.identify(who);
      const changed = await users[verb](id, 'admin');
      const { disabled_at } = await users.identify(String(id));
      if (!changed) note(`${username} was already ${verb}d: nothing changed`);
      print({ id, username, changed, disabled_at }, () => plain(`${username} is ${verb}d`));
    });

  ofMember('erase', 'Erase all of a member’s data except the id, permanently', 'pua users erase ada --yes')
    .alias('delete')
    .option('--yes', 'skip the confirmation')
    .runs(async ({ get, dataSource, print, confirm }, who) => {
      const user = await get(UsersService).find(who);
      await confirm(
        `Everything about ${user.username} (id ${user.id}) would be erased permanently: the profile, ${user.connections_count} connections, ` +
          `the RSVPs to ${user.events_count} events, ${user.achievements_count} achievements, all API keys, sessions and grants.`,
      );
      const { id } = user;
      const erased = (await eraseMembers(dataSource, [id], { actor: 'admin' })) ?? null;
      if (!erased) note(`${id} was already erased: nothing changed`);
      print({ id, erased }, () => `${id} is erased`);
    });

  ofMember(
    'sessions',
    'Show where a member is signed in, and which apps have access to their data',
    'pua users sessions ada',
  ).runs(async ({ get, print }, who) => {
    const { id } = await get(UsersService).find(who);
    const sessions = await get(ConnectedApps).listSessions(id);
    const apps = await get(ConnectedApps).listApps(id);
    const result = {
      sessions: sessions.shown,
      sessions_count: sessions.count,
      apps: apps.shown,
      apps_count: apps.count,
    };
    print(result, () =>
      [
        table(
          sessions.shown,
          {
            ...named('signed_in_at', 'last_seen_at'),
            ADDRESS: ({ ip }) => ip,
            BROWSER: ({ user_agent }) => user_agent,
          },
          'no sessions',
        ),
        table(
          apps.shown,
          {
            APP: ({ client_id }) => client_id,
            NAME: ({ client_name }) => client_name,
            ...named('scopes', 'since', 'last_used_at'),
          },
          'no apps',
        ),
      ].join('\n\n'),
    );
    for (const [name, { shown, count }] of Object.entries({ sessions, apps }))
      if (count > shown.length) note(`${count - shown.length} more ${name} are not shown`);
  });

  ofMember(
    'revoke-access',
    'Revoke apps’ access to a member’s data, including unused codes; without --client, also end browser sessions and calendar links',
    'pua users revoke-access ada --client demo',
    'any version',
  )
    .option('--client <id>', 'revoke only the access of this app, and end no session')
    .runs(async ({ get, print }, who, { client }) => {
      const { id, username } = await get(UsersService).identify(who);
      if (client !== undefined) await get(ClientsService).find(client);
      const access = get(ConnectedApps);
      const by = { actor: 'admin' } as const;
      const { grants, sessions } =
        client === undefined
          ? await access.revokeAll(id, by)
          : { grants: await access.revoke(id, client, by), sessions: 0 };
      print({ id, username, grants, sessions }, () =>
        plain(`${username}: ${grants} grants and ${sessions} browser sessions ended`),
      );
    });
}

function columnsOf<Text = string>(
  options: ReturnType<ReturnType<typeof profileOptions<[], {}>>['opts']>,
  read = (text: string | undefined) => text as Text | undefined,
) {
  return {
    external_id: read(options.externalId),
    email: read(options.email),
    first_name: read(options.firstName),
    last_name: read(options.lastName),
    display_name: read(options.displayName),
    bio: read(options.bio),
    profile_picture: read(options.profilePicture),
  };
}

/** Adds the options for a member's profile, email address and external id. @param empty whether an empty text clears a field */
function profileOptions<Args extends unknown[], Given extends OptionValues>(
  command: Command<Args, Given>,
  { empty = false } = {},
) {
  const { external_id, first_name, last_name, stored_display_name, bio } = LENGTHS.users;
  const email = (text: string) => (empty && text === '' ? text : parseEmail(text));
  const url = (text: string) => (empty && text === '' ? text : parseHttpUrl(text));
  return command
    .option(
      '--external-id <id>',
      'id in another system, such as the external identity provider; unique',
      textArgument([empty ? 0 : 1, external_id[1]]),
    )
    .option('--email <address>', 'for notices and password resets; no app can read it', email)
    .option('--first-name <text>', atMost(first_name), textArgument(first_name))
    .option('--last-name <text>', atMost(last_name), textArgument(last_name))
    .option(
      '--display-name <text>',
      'shown instead of first and last name',
      textArgument([empty ? 0 : 1, stored_display_name[1]]),
    )
    .option('--bio <text>', atMost(bio), textArgument(bio))
    .option('--profile-picture <url>', 'http or https', url);
}

const COLUMNS: Record<string, (user: ListedUser) => string | number | null> = {
  ...named('id', 'username'),
  NAME: ({ display_name }) => display_name,
  STATUS: ({ disabled_at, erased_at }) => (erased_at ? 'erased' : disabled_at ? 'disabled' : 'enabled'),
  PASSWORD: ({ has_password }) => (has_password ? 'yes' : 'no'),
  CREATED: ({ created_at }) => created_at,
};

const NO_PIPE =
  '--password-stdin reads from a pipe, not from the terminal: printf %s "$PASSWORD" | pua users …';

/** Reads a password from stdin, since other users could see it in the arguments. Omits a final line break. */
async function readPassword(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > 10_000) break; // far longer than any password: the length check rejects it
  }
  return text.replace(/\r?\n$/, '');
}
