import { createInterface } from 'node:readline';
import {
  Command,
  CommanderError,
  type CommandUnknownOpts,
  type ErrorOptions,
  type OptionValues,
} from '@commander-js/extra-typings';
import type { AcceptedSchema, Work } from './database.js';
import { asTyped, plain, print } from './output.js';

export const DECLINED = 'pua.declined';

interface CommandWork extends Work {
  /** Prints JSON with `--json`, else the text of `human`, which must clean untrusted parts with {@link plain}. */
  readonly print: <Result>(result: Result, human: (result: Result) => string) => void;
  /**
   * Asks the user to confirm an action, unless `--yes` is set. @param what the effect, as a sentence @param unasked `go on`: if it cannot
   * ask (no terminal, or `--json`), proceeds instead of failing @throws CommanderError {@link DECLINED} if the user declines
   */
  readonly confirm: (what: string, unasked?: 'go on') => Promise<void>;
}

interface Given extends OptionValues {
  readonly json?: true;
  readonly yes?: true;
}

type Refusal<Options> = (options: Options) => string | false | undefined;

declare module '@commander-js/extra-typings' {
  interface Command<
    Args extends any[] = [],
    Opts extends OptionValues = {},
    GlobalOpts extends OptionValues = {},
  > {
    refuses(faultOf: Refusal<Opts>): this;
    runs(work: (of: CommandWork, ...given: [...Args, Opts]) => Promise<void>): this;
  }
}

/** A command that reports all missing required options at once, unlike Commander's. */
export class PuaCommand extends Command {
  /** Shown in the help; undefined for a group. */
  example: string | undefined;
  accepted: AcceptedSchema = 'this version';
  #faultOf: Refusal<OptionValues> = () => undefined;

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

  override refuses(faultOf: Refusal<OptionValues>): this {
    this.#faultOf = faultOf;
    return this;
  }

  override runs(work: (of: CommandWork, ...given: never) => Promise<void>): this {
    return this.action(async (...given: unknown[]) => {
      const options = this.opts() as Given;
      const fault = this.#faultOf(options);
      if (fault) this.error(`error: ${fault}`);
      const own: Omit<CommandWork, keyof Work> = {
        print: (result, human) => print(options.json, result, () => human(result)),
        confirm: (...asked) => this.#confirm(options, ...asked),
      };
      const { onDatabase } = await import('./database.js'); // loaded on demand: the help needs no services
      return onDatabase((of) => work({ ...of, ...own }, ...(given as never)), this.accepted);
    });
  }

  async #confirm({ yes, json }: Given, what: string, unasked?: 'go on'): Promise<void> {
    const canAsk = !json && process.stdin.isTTY && process.stderr.isTTY;
    if (yes || (!canAsk && unasked)) return;
    if (!canAsk) this.error(`error: nothing was done: --yes is missing. ${plain(what)}`);
    process.stderr.write(`${plain(what)}\n`);
    if (await isAnsweredYes('Continue? [y/N] ')) return;
    process.stderr.write('Nothing was done\n');
    throw new CommanderError(0, DECLINED, 'declined');
  }
}

/** Asks for confirmation: only y and yes confirm; end of input and Ctrl-C decline. */
async function isAnsweredYes(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise((resolve) => {
      const atEnd = () => {
        process.stderr.write('\n'); // unlike a typed answer, Ctrl-C does not end the line
        resolve(false);
      };
      terminal.once('close', atEnd);
      terminal.question(question, (answer) => {
        terminal.off('close', atEnd);
        resolve(/^y(es)?$/i.test(answer.trim()));
      });
    });
  } finally {
    terminal.close();
  }
}

/** Rejects a command that would change nothing, since it has no option except `--json`. */
export const changesNothing: Refusal<OptionValues> = (options) =>
  Object.keys(options).every((name) => name === 'json') && 'nothing to change: name at least one option';

/** Adds `--json` and an example to a command. */
export function withExample(
  command: Command,
  example: string,
  accepted: AcceptedSchema = 'this version',
): Command<[], { json?: true }> {
  command
    .option('--json', 'print the result as JSON')
    .addHelpText('after', () => `\nExample:\n  $ ${asTyped(example)}`);
  return Object.assign(command, { example, accepted });
}

/** Makes a function that adds a command to the group, with `--json` and an example in its help. */
export function addTo(group: Command) {
  return (nameAndArguments: string, description: string, example: string, accepted?: AcceptedSchema) =>
    withExample(group.command(nameAndArguments).description(description), example, accepted);
}

/** Runs work with an `AbortSignal`, which the first SIGINT or SIGTERM aborts instead of ending the process. */
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
export const exampleOf = (command: CommandUnknownOpts) => (command as unknown as PuaCommand).example;
