import { buildMessage, ValidateBy, type ValidationError, type ValidationOptions } from 'class-validator';
import { isStorable } from '../../values/string-rules.js';
import { parseTimestamp } from '../../values/timestamps.js';

/** What a response says about a broken rule besides its message; every rule of an input has it as its `context`. */
interface RuleContext {
  /** As in `errors` of a problem. */
  readonly code: string;
  readonly max?: number;
  readonly allowed?: readonly string[];
}

/** What is wrong with one value, in the API's words. */
export interface Fault extends RuleContext {
  readonly detail: string;
  /** Code points of a text that is too long. */
  readonly actual?: number;
}

/** The options with which every input class is checked. */
export const VALIDATION = {
  forbidUnknownValues: false, // a query without parameters has no rules
  stopAtFirstError: true,
  validationError: { target: false },
} as const;

/** Finds the first broken rule of a property, in the order in which they are declared. */
export function faultOf({ constraints, contexts, value }: ValidationError): Fault {
  const [rule, detail] = Object.entries(constraints!)[0]!;
  const { code, ...facts } = contexts![rule] as RuleContext;
  const actual = facts.max === undefined ? {} : { actual: [...(value as string)].length };
  return { code, detail, ...facts, ...actual };
}

type Options = ValidationOptions & { readonly context: RuleContext };

/** A custom rule for texts; anything else breaks it. */
function textRule(name: string, holds: (text: string) => boolean, options: Options): PropertyDecorator {
  return ValidateBy(
    {
      name,
      validator: {
        validate: (value) => typeof value === 'string' && holds(value),
        defaultMessage: buildMessage((each) => `${each}$property breaks ${name}`, options),
      },
    },
    options,
  );
}

/** Requires a text of this many Unicode code points: JavaScript's own length counts some twice. */
export const CodePoints = (least: number, most: number, options: Options) =>
  textRule(
    'codePoints',
    (text) => {
      const { length } = [...text];
      return length >= least && length <= most;
    },
    options,
  );

/** Requires a text that PostgreSQL can store. */
export const Storable = (options: Options) => textRule('storable', isStorable, options);

/** Requires a date and time that {@link parseTimestamp} reads. */
export const ReadableTimestamp = (options: Options) =>
  textRule('timestamp', (text) => parseTimestamp(text) !== undefined, options);
