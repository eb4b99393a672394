import { Command, type CommandUnknownOpts, type ErrorOptions } from '@commander-js/extra-typings';
import { asTyped } from './output.js';

const examples = new WeakMap<CommandUnknownOpts, string>();

/** A command that names everything that is missing at once, where Commander stops at the first. */
export class PuaCommand extends Command {
  override createCommand(name?: string): PuaCommand {
    return new PuaCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    if (options?.code !== 'commander.missingMandatoryOptionValue') return super.error(message, options);
    const missing = this.options
      .filter((option) => option.mandatory && this.getOptionValue(option.attributeName()) === undefined)
      .map(({ flags }) => `'${flags}'`);
    return super.error(
      `error: required option${missing.length > 1 ? 's' : ''} ${missing.join(', ')} not specified`,
      options,
    );
  }
}

/** Adds a command that does something: each has `--json` and an example in its help. */
export function addCommand(
  parent: Command,
  nameAndArguments: string,
  description: string,
  example: string,
): Command<[], { json?: true }> {
  const command = parent
    .command(nameAndArguments)
    .description(description)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', () => `\nExample:\n  $ ${asTyped(example)}`);
  examples.set(command, example);
  return command;
}

/** Adds a group of commands. @returns what adds a command to it, as {@link addCommand} does */
export function addGroup(program: Command, name: string, description: string) {
  const group = program.command(name).description(description);
  return (...command: [nameAndArguments: string, description: string, example: string]) =>
    addCommand(group, ...command);
}

/** Runs what SIGINT and SIGTERM end, by the signal that it gets, where they would otherwise end the process. */
export async function endable<Result>(work: (ended: AbortSignal) => Promise<Result>): Promise<Result> {
  const ended = new AbortController();
  const end = () => ended.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    return await work(ended.signal);
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

/** Returns the example of a command; undefined for a group. */
export function exampleOf(command: CommandUnknownOpts): string | undefined {
  return examples.get(command);
}
