import { CommanderError, type Command } from '@commander-js/extra-typings';
import { OperatorError } from '../values/operator-error.js';
import { UnreachableDatabase } from '../database/open-database.js';
import { isUnavailable } from '../database/postgres/unavailable.js';
import { VERSION } from '../operations/metrics/version.js';
import { PuaCommand } from './command.js';
import { auditCommand } from './commands/audit.command.js';
import { clientsCommands } from './commands/clients.command.js';
import { dbCommands } from './commands/db.command.js';
import { doctorCommand } from './commands/doctor.command.js';
import { importCommand } from './commands/import.command.js';
import { keysCommands, secretsCommands, signingKeysCommands } from './commands/keys.command.js';
import { usersCommands } from './commands/users.command.js';
import { webhooksCommands } from './commands/webhooks.command.js';
import { asTyped, jsonOf, note } from './output.js';

/** Every command, in the order of the help. */
const COMMANDS = [
  keysCommands,
  clientsCommands,
  usersCommands,
  webhooksCommands,
  importCommand,
  dbCommands,
  signingKeysCommands,
  secretsCommands,
  auditCommand,
  doctorCommand,
];

/**
 * Creates the whole command line, which throws CommanderError instead of ending the process.
 *
 * @param json leaves reporting an error to whoever catches it, instead of writing it to stderr
 */
export function createProgram({ json = false }: { readonly json?: boolean } = {}): Command {
  const program = new PuaCommand(asTyped('pua'))
    .description('Manages the Public User API: keys, apps, members, webhooks, data, database')
    .version(VERSION, '--version', 'print the version')
    .exitOverride()
    .enablePositionalOptions() // an option belongs to the command that it follows
    .showHelpAfterError('(add --help for usage)');
  if (json) program.configureOutput({ writeErr: () => undefined });
  for (const register of COMMANDS) register(program);
  return program;
}

const DONE = 0;
const FAILED = 1;
const WRONG_USE = 2;

/** Commander's codes that mean no failure. */
const ASKED_FOR = ['commander.helpDisplayed', 'commander.version'];

/**
 * Runs one command; failures are reported on stderr.
 *
 * @param args as in the shell, after `pua`
 * @returns the exit code
 */
export async function run(args: readonly string[]): Promise<number> {
  const json = wantsJson(args);
  try {
    await createProgram({ json }).parseAsync(args, { from: 'user' });
    return DONE;
  } catch (error) {
    return explain(error, json);
  }
}

/** Even where the rest of the line is wrong. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}

function explain(error: unknown, json: boolean): number {
  if (error instanceof CommanderError) {
    if (ASKED_FOR.includes(error.code)) return DONE;
    const isDeclined = error.code === 'pua.declined';
    // Without --json Commander has already written what is wrong.
    if (json) fail(isDeclined ? 'declined' : 'wrong_use', error.message.replace(/^error: /, '').trim());
    return isDeclined ? FAILED : WRONG_USE;
  }
  const known = error instanceof OperatorError;
  const lost = !known && isUnavailable(error);
  const message = lost
    ? `The connection to the database was lost (${(error as Error).message}): the command may or may not have taken effect. Check, then run it again`
    : String((error as Partial<Error> | undefined)?.message ?? error);
  const unavailable = lost || error instanceof UnreachableDatabase;
  if (json) fail(unavailable ? 'unavailable' : known ? 'failed' : 'fault', message);
  else if (known || lost) note(message);
  else console.error(error); // an error in the program, with its stack
  return FAILED;
}

/** Writes what a failed command does with `--json`: one line on stderr, the last one there. `fault`: an error in the program itself. */
function fail(code: 'wrong_use' | 'failed' | 'declined' | 'unavailable' | 'fault', message: string): void {
  process.stderr.write(`${jsonOf({ error: { code, message: asTyped(message) } })}\n`);
}
