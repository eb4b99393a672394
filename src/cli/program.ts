import type { Command } from '@commander-js/extra-typings';
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
import { asTyped } from './output.js';

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
