import { CommanderError, type Command } from '@commander-js/extra-typings';
import { OperatorError } from '../values/operator-error.js';
import { isUnavailable, UnreachableDatabase } from '../database/postgres/unavailable.js';
import { VERSION } from '../config/version.js';
import { DECLINED, PuaCommand } from './command.js';
import { asTyped, formatJson, note } from './output.js';

interface Entry {
  readonly description: string;
  /** Loads the function that adds options and an action to a command, or subcommands to a group. */
  readonly load: () => Promise<(command: Command) => void>;
}

/** Commands in the order of the help, loaded on demand. */
const COMMANDS: Readonly<Record<string, Entry>> = {
  keys: {
    description: 'API keys of members, and of the platform',
    load: async () => (await import('./commands/keys.command.js')).keysCommands,
  },
  clients: {
    description: 'Apps that sign members in with OAuth',
    load: async () => (await import('./commands/clients.command.js')).clientsCommands,
  },
  users: {
    description: 'Members',
    load: async () => (await import('./commands/users.command.js')).usersCommands,
  },
  webhooks: {
    description: 'Webhook endpoints that are notified of changes (Standard Webhooks)',
    load: async () => (await import('./commands/webhooks.command.js')).webhooksCommands,
  },
  import: {
    description:
      'Import the platform’s data: users, events, participants, connections, achievements, user_achievements',
    load: async () => (await import('./commands/import.command.js')).importCommand,
  },
  db: {
    description: 'The database’s schema',
    load: async () => (await import('./commands/db.command.js')).dbCommands,
  },
  'signing-keys': {
    description: 'Keys that sign ID tokens',
    load: async () => (await import('./commands/keys.command.js')).signingKeysCommands,
  },
  secrets: {
    description: 'Generate a SECRET_KEY',
    load: async () => (await import('./commands/keys.command.js')).secretsCommands,
  },
  audit: {
    description: 'Show audit events, newest first; docs/operators/audit.md lists the types',
    load: async () => (await import('./commands/audit.command.js')).auditCommand,
  },
  doctor: {
    description:
      'Check settings, proxy, external identity provider, database, schema, replicas, keys, counters and webhooks, and explain how to fix each fault',
    load: async () => (await import('./commands/doctor.command.js')).doctorCommand,
  },
  status: {
    description:
      'Show whether the server is reachable and ready, its version, its content, and open problems',
    load: async () => (await import('./commands/status.command.js')).statusCommand,
  },
  open: {
    description: 'Print the URL of a page, and open it if there is a desktop',
    load: async () => (await import('./commands/open.command.js')).openCommand,
  },
  completion: {
    description: 'Print a script that completes commands, options and values in a shell',
    load: async () => (await import('./commands/completion.command.js')).completionCommand,
  },
};

/** Creates the program. @param json whether the caller writes errors @param args words after `pua`; default: loads all commands */
export async function createProgram({
  json = false,
  args,
}: { readonly json?: boolean; readonly args?: readonly string[] } = {}): Promise<Command> {
  const program = new PuaCommand(asTyped('pua'))
    .description('Manages the Public User API: keys, apps, members, webhooks, data, database')
    .version(VERSION, '--version', 'print the version')
    .exitOverride()
    .enablePositionalOptions() // an option after a command belongs to that command
    .showHelpAfterError('(add --help for usage)');
  if (json) program.configureOutput({ writeErr: () => undefined });
  for (const [name, { description, load }] of Object.entries(COMMANDS)) {
    const command = program.command(name).description(description);
    if (args?.includes(name) ?? true) (await load())(command);
  }
  return program.configureHelp({ subcommandTerm: (command) => command.name() });
}

/** The command that the scripts of `pua completion` call. */
const COMPLETE = '__complete';

const DONE = 0;
const FAILED = 1;
const WRONG_USE = 2;

const ASKED_FOR = ['commander.helpDisplayed', 'commander.version', DECLINED];

/** Runs one command and reports failures on stderr. @param args words after `pua` @returns the exit code */
export async function run(args: readonly string[]): Promise<number> {
  const [first, ...rest] = args;
  if (first === COMPLETE) return complete(rest);
  const json = wantsJson(args);
  try {
    await (await createProgram({ json, args })).parseAsync(args, { from: 'user' });
    return DONE;
  } catch (error) {
    return explain(error, json);
  }
}

/** Prints completions, or nothing after an error. */
async function complete(words: readonly string[]): Promise<number> {
  const { candidates } = await import('./completion.js');
  const found = await candidates(await createProgram({ json: true, args: words }), words).catch(() => []);
  process.stdout.write(found.map((candidate) => `${candidate}\n`).join(''));
  return DONE;
}

/** Finds `--json` even if the rest of the line is wrong. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}

function explain(error: unknown, json: boolean): number {
  if (error instanceof CommanderError) {
    if (ASKED_FOR.includes(error.code)) return DONE;
    // Without `--json`, Commander has already written the error.
    if (json) fail('wrong_use', error.message.replace(/^error: /, '').trim());
    return WRONG_USE;
  }
  const known = error instanceof OperatorError;
  const lost = !known && isUnavailable(error);
  const message = lost
    ? `The connection to the database was lost (${(error as Error).message}). The command may have taken effect: check before you run it again`
    : String((error as Partial<Error> | undefined)?.message ?? error);
  const unavailable = lost || error instanceof UnreachableDatabase;
  if (json) fail(unavailable ? 'unavailable' : known ? 'failed' : 'fault', message);
  else if (known || lost) note(message);
  else console.error(error); // an error in the program, with its stack
  return FAILED;
}

/** Writes the error of a command with `--json` as the last line on stderr. `fault`: an error in the program itself. */
function fail(code: 'wrong_use' | 'failed' | 'unavailable' | 'fault', message: string): void {
  process.stderr.write(`${formatJson({ error: { code, message: asTyped(message) } })}\n`);
}
