import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { plain } from './output.js';

/**
 * Makes sure that what cannot be undone is wanted: `--yes` says so, or whoever sits at the terminal. Where nobody can be asked,
 * it is wrong use.
 *
 * @param what would happen, as a sentence
 * @throws CommanderError where it is not wanted, or nobody is there to ask
 */
export async function confirm(
  command: Command,
  { yes, json }: { readonly yes?: boolean; readonly json?: boolean },
  what: string,
): Promise<void> {
  if (yes) return;
  if (json || !process.stdin.isTTY || !process.stderr.isTTY)
    command.error(`error: nothing was done: --yes is missing. ${plain(what)}`);
  process.stderr.write(`${plain(what)}\n`);
  if (!(await isAnsweredYes('Go on? [y/N] ')))
    command.error('error: nothing was done', { code: 'pua.declined', exitCode: 1 });
}

/** Everything but y or yes, the end of the input and Ctrl-C too, is a no. */
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
