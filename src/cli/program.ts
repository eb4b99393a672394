import { Command } from 'commander';
import { auditCommand } from './commands/audit.command.js';
import { clientsCommands } from './commands/clients.command.js';
import { dbCommands } from './commands/db.command.js';
import { doctorCommand } from './commands/doctor.command.js';
import { importCommand } from './commands/import.command.js';
import { keysCommands } from './commands/keys.command.js';
import { secretsCommands } from './commands/secrets.command.js';
import { signingKeysCommands } from './commands/signing-keys.command.js';
import { usersCommands } from './commands/users.command.js';

/** Every command, in the order of the help. */
const COMMANDS = [
  keysCommands,
  clientsCommands,
  usersCommands,
  importCommand,
  dbCommands,
  signingKeysCommands,
  secretsCommands,
  auditCommand,
  doctorCommand,
];

/** The whole command line; it throws CommanderError in place of ending the process. */
export function createProgram(): Command {
  const program = new Command('pua')
    .description('Runs the Public User API: keys, members, data, database')
    .exitOverride()
    .enablePositionalOptions() // an option belongs to the command that it stands behind
    .showHelpAfterError('(add --help to see how it is used)');
  for (const register of COMMANDS) register(program);
  return program;
}
