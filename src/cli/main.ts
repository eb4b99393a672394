import { CommanderError } from 'commander';
import { StartupError } from '../config/config.js';
import { Refusal } from '../database/refusal.js';
import { isUnavailable } from '../database/unavailable.js';
import { note } from './output.js';
import { createProgram } from './program.js';

const FAILED = 1;
const WRONG_USE = 2;

// Whoever reads may stop early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

try {
  await createProgram().parseAsync();
} catch (error) {
  process.exitCode = explain(error);
}

/** @returns the exit code */
function explain(error: unknown): number {
  // Commander has written what is wrong, or the help that was asked for.
  if (error instanceof CommanderError) {
    const asked = error.code === 'commander.helpDisplayed' || error.code === 'commander.version';
    return asked ? 0 : WRONG_USE;
  }
  if (error instanceof StartupError || error instanceof Refusal) note(error.message);
  else if (isUnavailable(error)) {
    note(
      `The database went away (${(error as Error).message}): nothing of this command is certain to be done; look, then run it again`,
    );
  } else console.error(error); // a fault of ours, with its stack
  return FAILED;
}
