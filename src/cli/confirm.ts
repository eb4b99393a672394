import { createInterface } from 'node:readline';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { plain } from './output.js';

/**
 * Asks for confirmation of what cannot be undone: by `--yes`, or on the terminal. Without either, it is wrong use.
 *
 * @param what would happen, as a sentence
 * @throws CommanderError where it is declined, or there is nobody to ask
 */
export async function confirm(
  command: CommandUnknownOpts,
  { yes, json }: { readonly yes?: boolean; readonly json?: boolean },
  what: string,
): Promise<void> {
  if (yes) return;
  if (json || !isOnTerminal()) command.error(`error: nothing was done: --yes is missing. ${plain(what)}`);
  process.stderr.write(`${plain(what)}\n`);
  if (!(await isAnsweredYes('Continue? [y/N] ')))
    command.error('error: nothing was done', { code: 'pua.declined', exitCode: 1 });
}

/** Asks for confirmation on a terminal alone: a script that ends access in an emergency is not asked. @throws CommanderError where it is declined */
export async function confirmOnTerminal(
  ...[command, options, what]: Parameters<typeof confirm>
): Promise<void> {
  if (!options.json && isOnTerminal()) await confirm(command, options, what);
}

const isOnTerminal = () => process.stdin.isTTY && process.stderr.isTTY;

/** Anything but y or yes is a no, including the end of the input and Ctrl-C. */
async function isAnsweredYes(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise((resolve) => {
      terminal.once('close', () => resolve(false));
      terminal.question(question, (answer) => resolve(/^y(es)?$/i.test(answer.trim())));
    });
  } finally {
    terminal.close();
  }
}
