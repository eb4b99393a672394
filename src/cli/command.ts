import type { Command } from 'commander';

const examples = new WeakMap<Command, string>();

/** A command that does something: each has `--json` and an example in its help. */
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
    .addHelpText('after', `\nExample:\n  $ ${example}`);
  examples.set(command, example);
  return command;
}

/** A command that only holds others: alone, it is wrong use and shows them. */
export function addGroup(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description);
}

/** The example of a command; undefined for a group. */
export function exampleOf(command: Command): string | undefined {
  return examples.get(command);
}
