import { Command, type ErrorOptions } from 'commander';
import { asTyped } from './output.js';

const examples = new WeakMap<Command, string>();

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

/** The option that every command has. */
export interface Json {
  json?: boolean;
}

/** Adds a command that does something: each has `--json` and an example in its help. */
export function addCommand(
  parent: Command,
  nameAndArguments: string,
  description: string,
  example: string,
): Command {
  const command = parent
    .command(nameAndArguments)
    .description(description)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', () => `\nExample:\n  $ ${asTyped(example)}`);
  examples.set(command, example);
  return command;
}

/** Returns the example of a command; undefined for a group. */
export function exampleOf(command: Command): string | undefined {
  return examples.get(command);
}
