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

/** Code of what ends a command whose question was answered with no. */
export const DECLINED = 'pua.declined';

/** What a command on the database works with. */
interface CommandWork extends Work {
  /** Prints the result: as JSON with `--json`, else in a form for people, in which text chosen by others goes through {@link plain}. */
  readonly print: <Result>(result: Result, human: (result: Result) => string) => void;
  /**
   * Asks for confirmation of what cannot be undone: by `--yes`, or on the terminal.
   *
   * @param what would happen, as a sentence
   * @param unasked what to do if there is nobody to ask: a script that ends access in an emergency goes on; else it is wrong use
   * @throws CommanderError {@link DECLINED}, which is no failure
   */
  readonly confirm: (what: string, unasked?: 'go on') => Promise<void>;
}

/** Options that mean the same for every command that has them. */
interface Given extends OptionValues {
  readonly json?: true;
  readonly yes?: true;
}

/** What is wrong with options that make no sense together. */
type Refusal<Options> = (options: Options) => string | false | undefined;

declare module '@commander-js/extra-typings' {
  interface Command<
    Args extends any[] = [],
    Opts extends OptionValues = {},
    GlobalOpts extends OptionValues = {},
  > {
    /** Refuses some lines before the database is opened. */
    refuses(faultOf: Refusal<Opts>): this;
    /** Does its work on the database. */
    runs(work: (of: CommandWork, ...given: [...Args, Opts]) => Promise<void>): this;
  }
}

/** A command that names everything that is missing at once, where Commander stops at the first. */
export class PuaCommand extends Command {
  /** undefined for a group. */
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
      const { onDatabase } = await import('./database.js'); // with all services: nobody waits for them to read the help
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

/** Anything but y or yes is a no, including the end of the input and Ctrl-C. */
async function isAnsweredYes(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise((resolve) => {
      const atEnd = () => {
        process.stderr.write('\n'); // the answer itself would have ended the line
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

/** Refuses to change something where no option says what. */
export const changesNothing: Refusal<OptionValues> = (options) =>
  Object.keys(options).every((name) => name === 'json') && 'nothing to change: name at least one option';

/** Adds a command that does something: each has `--json` and an example in its help. */
export function addCommand(
  parent: Command,
  nameAndArguments: string,
  description: string,
  example: string,
  accepted: AcceptedSchema = 'this version',
): Command<[], { json?: true }> {
  return withExample(parent.command(nameAndArguments).description(description), example, accepted);
}

/** Makes a command one that does something. */
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

/** Makes what adds commands to the group, as {@link addCommand} does. */
export function addTo(group: Command) {
  return (...command: Tail<Parameters<typeof addCommand>>) => addCommand(group, ...command);
}

type Tail<List> = List extends [unknown, ...infer Rest] ? Rest : never;

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
export const exampleOf = (command: CommandUnknownOpts) => (command as unknown as PuaCommand).example;
