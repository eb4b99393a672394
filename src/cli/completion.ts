import { existsSync } from 'node:fs';
import type { Argument, CommandUnknownOpts, Option } from '@commander-js/extra-typings';
import { ALL_PLATFORM_SCOPES, ALL_SCOPES } from '../auth/scopes.js';
import type { Work } from './database.js';
import { plain } from './output.js';

/** A candidate and its description; members may have chosen both texts. */
type Candidate = readonly [word: string, about?: string];
type Source = (typed: string) => Promise<readonly Candidate[]>;

const MOST = 100;

/** Letters, digits and characters without a meaning in shells, so that members' texts never become commands. */
const SAFE = /^[\p{L}\p{N}_.:@%+/-][\p{L}\p{N}_.:@%+,/=-]*$/u;

/** Completes the last of several words separated by commas. */
const listOf =
  (values: () => Promise<readonly string[]>): Source =>
  async (typed) => {
    const before = typed.split(',').slice(0, -1);
    return (await values()).flatMap((value) =>
      before.includes(value) ? [] : [[[...before, value].join(',')] as const],
    );
  };

/** Reads candidates from the database; finds none if the embedded database does not exist. */
const stored =
  (read: (of: Work, typed: string) => Promise<readonly Candidate[]>): Source =>
  async (typed) => {
    const { onDatabase, readConfig } = await import('./database.js');
    const config = readConfig();
    if (!config.databaseUrl && !existsSync(config.dataDir)) return [];
    return onDatabase((of) => read(of, typed), 'anything', config);
  };

const scopes = listOf(async () => ALL_SCOPES);
const clients = stored(async ({ get }) => {
  const { ClientsService } = await import('../clients/clients.service.js');
  return (await get(ClientsService).list()).map(({ client_id, name }) => [client_id, name]);
});
const users = stored(async ({ get }, typed) => {
  const { UsersService } = await import('../accounts/users.service.js');
  const found = await get(UsersService).list(MOST, { search: typed || undefined });
  return found.map(({ username, display_name }) => [username, display_name]);
});
const keys = stored(async ({ get }) => {
  const { ApiKeysService } = await import('../auth/api-keys/api-keys.service.js');
  return (await get(ApiKeysService).list({})).map(({ id, name, status }) => [id, `${name}, ${status}`]);
});
const webhooks = stored(async ({ get }) => {
  const { WebhooksService } = await import('../webhooks/webhooks.service.js');
  return (await get(WebhooksService).list()).map(({ id, url }) => [id, url]);
});

/** Sources of candidates by option or argument. A group's name before it limits the source to that command group. */
const SOURCES: Readonly<Record<string, Source>> = {
  'keys --scopes': listOf(async () => [...ALL_SCOPES, ...ALL_PLATFORM_SCOPES]),
  '--scopes': scopes,
  '--add-scopes': scopes,
  '--remove-scopes': scopes,
  '--types': listOf(async () => (await import('../webhooks/webhooks.service.js')).ALL_TYPES),
  '--client': clients,
  '--user': users,
  '--key': keys,
  'clients id': clients,
  'users id|username': users,
  'keys id': keys,
  'webhooks id': webhooks,
};

/** Finds completions. @param words after `pua`; the last is being typed, and may be empty @returns lines: word, tab, description */
export async function candidates(program: CommandUnknownOpts, words: readonly string[]): Promise<string[]> {
  const typed = words.at(-1) ?? '';
  const isOption = typed.startsWith('-');
  let command = program;
  let option: Option | undefined;
  let place = 0;
  for (const word of words.slice(0, -1)) {
    if (word.startsWith('-'))
      option = command.options.find(
        ({ long, required, optional }) => long === word && (required || optional),
      );
    else if (option) option = option.variadic ? option : undefined;
    else {
      const child = command.commands.find((one) => [one.name(), ...one.aliases()].includes(word));
      command = child ?? command;
      place += child ? 0 : 1;
    }
  }
  const group = command.parent?.name() ?? '';
  const valuesOf = async (of: Option | Argument, name: string): Promise<readonly Candidate[]> =>
    of.argChoices?.map((value) => [value]) ??
    (await (SOURCES[`${group} ${name}`] ?? SOURCES[name])?.(typed)) ??
    [];
  const argument = command.registeredArguments[place];
  const found: readonly Candidate[] = isOption
    ? [...command.options.map(({ long, description }) => [long!, description] as const), ['--help']]
    : option
      ? await valuesOf(option, option.long!)
      : [
          ...command.commands.map((child) => [child.name(), child.description()] as const),
          ...(argument ? await valuesOf(argument, argument.name()) : []),
        ];
  return found
    .filter(([word]) => word.startsWith(typed) && SAFE.test(word) && word.startsWith('-') === isOption)
    .slice(0, MOST)
    .map(([word, about = '']) => `${word}\t${plain(about).replace(/\s+/g, ' ').slice(0, 80)}`);
}
