import { CommanderError } from 'commander';
import { OperatorError } from '../values/operator-error.js';
import { isUnavailable } from '../database/unavailable.js';
import { note } from './output.js';
import { createProgram } from './program.js';

const DONE = 0;
const FAILED = 1;
const WRONG_USE = 2;

/**
 * Runs one command; what fails is told on stderr.
 *
 * @param args as in the shell, after `pua`
 * @returns the exit code
 */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
    return DONE;
  } catch (error) {
    return explain(error);
  }
}

function explain(error: unknown): number {
  // Commander has written what is wrong, or the help that was asked for.
  if (error instanceof CommanderError) {
    const asked = error.code === 'commander.helpDisplayed' || error.code === 'commander.version';
    return asked ? DONE : WRONG_USE;
  }
  if (error instanceof OperatorError) note(error.message);
  else if (isUnavailable(error)) {
    note(
      `The database went away (${(error as Error).message}): nothing of this command is certain to be done; look, then run it again`,
    );
  } else console.error(error); // a fault of ours, with its stack
  return FAILED;
}
