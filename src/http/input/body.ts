import { applyDecorators } from '@nestjs/common';
import { ValidateBy, ValidateIf, validateSync } from 'class-validator';
import express from 'express';
import type { Request, Response } from 'express';
import { Problem } from '../output/problems.js';
import type { ProblemDetail } from '../output/problems.js';
import { isHttpUrl, isStorable } from '../../values/string-rules.js';

/** The largest honest body, a full profile, has 11 KB. */
export const BODY_LIMIT_BYTES = 16_384;
const MOST_FIELDS = 32;
/** The body itself is 1. */
const DEEPEST = 8;

const readRaw = express.raw({ type: () => true, limit: BODY_LIMIT_BYTES });

/**
 * Reads the body, after credential, scope, rate and query were checked, and checks it against a class.
 *
 * @param Fields class whose properties carry {@link Text} or {@link HttpUrl}
 * @returns the fields that were sent, each allowed
 * @throws Problem payload_too_large, unsupported_media_type, invalid_json, validation_failed
 */
export async function readBody<Fields extends object>(
  request: Request,
  response: Response,
  Fields: new () => Fields,
  readOnlyFields: readonly string[],
): Promise<Partial<Fields>> {
  return checkFields(await readJsonObject(request, response), Fields, readOnlyFields);
}

async function readJsonObject(request: Request, response: Response): Promise<Record<string, unknown>> {
  const bytes = await readBytes(request, response);
  const type = request.headers['content-type'];
  if ((bytes.length > 0 || type !== undefined) && !isJson(type)) throw new Problem('unsupported_media_type');
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Problem('invalid_json', { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Problem('invalid_json');
  return value as Record<string, unknown>;
}

async function readBytes(request: Request, response: Response): Promise<Buffer> {
  const { context } = request;
  context.readingBody = true;
  await new Promise<void>((resolve, reject) => {
    readRaw(request, response, (error?: unknown) => {
      context.readingBody = false;
      context.deadline?.refresh();
      if (error === undefined || error === null) resolve();
      else reject(bodyProblem(error as { type?: string; status?: number }));
    });
  });
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** What the body parser says (http-errors with a `type`), in the API's codes. */
function bodyProblem(error: { type?: string; status?: number }): Problem {
  if (error.type === 'entity.too.large') {
    // The rest is not read: the connection cannot be used again.
    return new Problem('payload_too_large', { headers: { Connection: 'close' }, cause: error });
  }
  if (error.type === 'encoding.unsupported') return new Problem('unsupported_media_type', { cause: error });
  return new Problem('invalid_json', { cause: error });
}

function isJson(type: string | undefined): boolean {
  return (
    type !== undefined &&
    /^\s*application\/json\s*(;\s*charset\s*=\s*"?(utf-?8|us-ascii)"?\s*)?;?\s*$/i.test(type)
  );
}

interface Fault {
  readonly code: string;
  /** Follows the field's name. */
  readonly detail: string;
  readonly max?: number;
  readonly actual?: number;
}

type Check = (value: string) => Fault | undefined;

const CHECKS = 'http:checks';

function field(...checks: Check[]): PropertyDecorator {
  return applyDecorators(
    Reflect.metadata(CHECKS, checks) as PropertyDecorator,
    ValidateIf((_, value) => value !== null && value !== undefined),
    ValidateBy({ name: 'allowed', validator: { validate: (value) => faultOf(checks, value) === undefined } }),
  );
}

function faultOf(checks: readonly Check[], value: unknown): Fault | undefined {
  if (typeof value !== 'string') return { code: 'invalid_type', detail: 'must be a string or null.' };
  for (const check of checks) {
    const fault = check(value);
    if (fault) return fault;
  }
  return undefined;
}

const storable: Check = (value) =>
  isStorable(value)
    ? undefined
    : { code: 'invalid_characters', detail: 'must not contain U+0000 or half of a surrogate pair.' };

const atMost =
  (max: number): Check =>
  (value) => {
    const actual = [...value].length;
    return actual <= max
      ? undefined
      : { code: 'too_long', detail: `must have at most ${max} characters.`, max, actual };
  };

const httpUrl: Check = (value) =>
  isHttpUrl(value)
    ? undefined
    : { code: 'invalid_url', detail: 'must be an absolute http or https URL without user and password.' };

/** A text of at most `max` Unicode code points, or null. */
export const Text = (max: number) => field(storable, atMost(max));

/** An absolute http(s) URL of at most `max` code points, or null. The server never fetches it. */
export const HttpUrl = (max: number) => field(storable, atMost(max), httpUrl);

/** @throws Problem validation_failed with every fault; what it returns has no prototype but Object's */
export function checkFields<Fields extends object>(
  body: Record<string, unknown>,
  Fields: new () => Fields,
  readOnlyFields: readonly string[],
): Partial<Fields> {
  const names = Object.keys(body);
  if (names.length > MOST_FIELDS) {
    throw wholeBody(
      'too_many_fields',
      `The body must have at most ${MOST_FIELDS} fields.`,
      MOST_FIELDS,
      names.length,
    );
  }
  if (isDeeperThan(body, DEEPEST))
    throw wholeBody('too_deep', `The body must be nested at most ${DEEPEST} deep.`, DEEPEST);
  const candidate = new Fields() as Record<string, unknown>;
  const errors: ProblemDetail[] = [];
  const known = names.filter((name) => checksOf(Fields, name) !== undefined);
  for (const name of known) candidate[name] = body[name];
  const wrong = new Set(
    validateSync(candidate, { forbidUnknownValues: false }).map(({ property }) => property),
  );
  for (const name of names) {
    const checks = checksOf(Fields, name);
    if (checks === undefined) {
      const fault = readOnlyFields.includes(name)
        ? { code: 'read_only_field', detail: 'cannot be changed here.' }
        : { code: 'unknown_field', detail: 'is not a field of this resource.' };
      errors.push(fieldError(name, fault));
    } else if (wrong.has(name)) {
      errors.push(fieldError(name, faultOf(checks, body[name])!));
    }
  }
  if (errors.length > 0) throw validationFailed(errors);
  return Object.fromEntries(known.map((name) => [name, body[name]])) as Partial<Fields>;
}

function checksOf(Fields: new () => object, name: string): readonly Check[] | undefined {
  return Reflect.getMetadata(CHECKS, Fields.prototype as object, name) as readonly Check[] | undefined;
}

function fieldError(name: string, { detail, ...fault }: Fault): ProblemDetail {
  const wellFormed = name.toWellFormed();
  const token = encodeURIComponent(wellFormed.replaceAll('~', '~0').replaceAll('/', '~1')); // RFC 6901 §6
  return { pointer: `#/${token}`, field: wellFormed, ...fault, detail: `${wellFormed} ${detail}` };
}

function wholeBody(code: string, detail: string, max: number, actual?: number): Problem {
  return validationFailed([
    { pointer: '#', field: null, code, detail, max, ...(actual === undefined ? {} : { actual }) },
  ]);
}

function validationFailed(errors: readonly ProblemDetail[]): Problem {
  const detail = errors.length === 1 ? '1 field is invalid.' : `${errors.length} fields are invalid.`;
  return new Problem('validation_failed', { detail, errors });
}

/** Without recursion: what is checked here came from outside. */
function isDeeperThan(body: object, deepest: number): boolean {
  let level: object[] = [body];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > deepest) return true;
    level = level.flatMap((value) =>
      Object.values(value).filter((child) => typeof child === 'object' && child !== null),
    );
  }
  return false;
}
