import { promisify } from 'node:util';
import { applyDecorators, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { IsOptional } from 'class-validator/cjs/decorator/common/IsOptional.js';
import { ValidateBy } from 'class-validator/cjs/decorator/common/ValidateBy.js';
import express, { type Request, type Response } from 'express';
import { Documents, type RequestBody } from '../output/openapi.js';
import { pointerTo, Problem, type ProblemDetail } from '../output/problems.js';
import type { Field } from '../../model/field.js';
import { Described, Model, nullable, propertiesOf, refTo } from '../../model/json-schema.js';
import { receiving, requestOf, responseOf } from '../pipeline/request-context.js';
import { isHttpUrl, isStorable } from '../../values/string-rules.js';
import type { Length } from '../../values/vocabulary.js';
import { classOfParameter, VALIDATION, validator } from './query.js';

/** Default maximum size of a body. */
const BODY_LIMIT_BYTES = 16_384;
const MAX_FIELDS = 32;
/** Maximum number of nesting levels; the body itself is level 1. */
const DEEPEST = 8;

/** Makes a function that reads a whole body into `request.body`. */
export const rawReader = (limit: number) =>
  promisify<Request, Response>(express.raw({ type: () => true, limit }));
const readRaw = rawReader(BODY_LIMIT_BYTES);

const JSON_TYPE = /^\s*application\/json\s*(;\s*charset\s*=\s*"?(utf-?8|us-ascii)"?\s*)?;?\s*$/i;
const NDJSON_TYPE = /^\s*application\/x-ndjson\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?;?\s*$/i;

/** Injects a JSON body after checking its fields. @param resource its other fields are reported as read-only */
export const JsonBody =
  (resource: Model): ParameterDecorator =>
  (controller, name, index) => {
    const body = classOfParameter(controller, name!, index);
    const schema = refTo(new Model(body.name, Object.fromEntries(propertiesOf(body))));
    injected(
      async (request, response) => checkFields(await readJsonObject(request, response), body, resource),
      { content: { 'application/json': { schema } } },
    )(controller, name, index);
  };

/** Makes a decorator that documents the request body, and injects the result of `read`. */
function injected(
  read: (request: Request, response: Response) => Promise<object>,
  documentation: Omit<RequestBody, 'required'>,
): ParameterDecorator {
  const inject = createParamDecorator((_: unknown, context: ExecutionContext) =>
    read(requestOf(context), responseOf(context)),
  );
  return (controller, name, index) => {
    Documents({
      body: { required: true, ...documentation },
      problems: ['invalid_json', 'payload_too_large', 'unsupported_media_type', 'validation_failed'],
    })(controller, name!, Object.getOwnPropertyDescriptor(controller, name!)!);
    inject()(controller, name, index);
  };
}

async function readJsonObject(request: Request, response: Response): Promise<Record<string, unknown>> {
  const value = await readJson(request, response);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Problem('invalid_json');
  return value as Record<string, unknown>;
}

/** Reads and parses a JSON body. @param read a function from {@link rawReader}, which limits the size */
export async function readJson(request: Request, response: Response, read = readRaw): Promise<unknown> {
  const bytes = await readBytes(request, response, read);
  const type = request.headers['content-type'];
  if ((bytes.length > 0 || type !== undefined) && !JSON_TYPE.test(type ?? ''))
    throw new Problem('unsupported_media_type');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Problem('invalid_json', { cause: error });
  }
}

/** Injects the bytes of an NDJSON body; the handler checks its lines. @param Line model of a line @param forms its variants, as JSON Schema */
export const NdjsonBody = (
  Line: Model,
  forms: readonly Readonly<Record<string, unknown>>[],
  maxBytes: number,
): ParameterDecorator => {
  const read = rawReader(maxBytes);
  return injected(
    async (request, response) => {
      const bytes = await readBytes(request, response, read);
      if (!NDJSON_TYPE.test(request.headers['content-type'] ?? ''))
        throw new Problem('unsupported_media_type', {
          detail: 'The Content-Type is not application/x-ndjson.',
        });
      return bytes;
    },
    {
      description: 'One line for each record',
      content: { 'application/x-ndjson': { schema: { allOf: [refTo(Line)], oneOf: [...forms] } } },
    },
  );
};

/** Reads a body's bytes. @throws Problem, for example payload_too_large */
export async function readBytes(request: Request, response: Response, read = readRaw): Promise<Buffer> {
  await receiving(request, () =>
    read(request, response).catch((error: unknown) => {
      throw bodyProblem(error as { type?: string; code?: string });
    }),
  );
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** Converts an error of the body parser into a problem. */
function bodyProblem(error: { type?: string; code?: string }): Problem {
  if (error.type === 'entity.too.large') {
    // The server does not read the rest, so the connection cannot be reused.
    return new Problem('payload_too_large', { headers: { Connection: 'close' }, cause: error });
  }
  if (error.type === 'encoding.unsupported') return new Problem('unsupported_media_type', { cause: error });
  // Errors from zlib.
  const detail = error.code?.startsWith('Z_')
    ? 'The request body does not match Content-Encoding.'
    : undefined;
  return new Problem('invalid_json', { cause: error, ...(detail ? { detail } : {}) });
}

const rule = (code: string, detail: string, validate: (value: string) => boolean, facts: object = {}) =>
  ValidateBy({ name: code, validator: { validate } }, { message: detail, context: { code, ...facts } });

/** Declares an optional text or null, with the maximum length of the given table field. With `format: 'uri'`: an http(s) URL. */
export const Writable = (
  { type }: Field<string | null>,
  facts: { readonly example?: string; readonly format?: 'uri' } = {},
): PropertyDecorator => {
  const most = (type as { readonly length: Length }).length[1];
  const limit = `$property must have at most ${most} characters.`;
  const url = '$property must be an absolute http or https URL without user and password.';
  return applyDecorators(
    Described(nullable({ type: 'string', maxLength: most, ...facts }), { required: false }),
    IsOptional(),
    rule('invalid_type', '$property must be a string or null.', (value) => typeof value === 'string'),
    rule('invalid_characters', '$property must not contain U+0000 or half of a surrogate pair.', isStorable),
    // PostgreSQL counts variation selectors, but class-validator's MaxLength does not.
    rule('too_long', limit, (value) => [...value].length <= most, { max: most }),
    ...(facts.format ? [rule('invalid_url', url, isHttpUrl)] : []),
  );
};

function exceeds(code: string, what: string, max: number, facts: { readonly actual?: number } = {}): Problem {
  const fault = { code, detail: `The body must have at most ${max} ${what}.`, max, ...facts };
  return new Problem('validation_failed', { errors: [{ pointer: '#', field: null, ...fault }] });
}

/** @throws Problem validation_failed with one fault per invalid field, or with the single fault `too_many_fields` or `too_deep` */
function checkFields(body: Record<string, unknown>, fields: new () => object, resource: Model): object {
  const names = Object.keys(body);
  if (names.length > MAX_FIELDS)
    throw exceeds('too_many_fields', 'fields', MAX_FIELDS, { actual: names.length });
  if (isDeeperThan(body, DEEPEST)) throw exceeds('too_deep', 'nesting levels', DEEPEST);
  const known = propertiesOf(fields);
  const sent = Object.fromEntries(names.filter((name) => known.has(name)).map((name) => [name, body[name]]));
  const broken = validator.validateSync(Object.assign(new fields(), sent), VALIDATION);
  const errors = names.flatMap((name) => {
    if (!known.has(name)) return [fieldError(name, notAField(name, [...known.keys()], resource))];
    const { constraints, contexts } = broken.find(({ property }) => property === name) ?? {};
    if (!constraints) return [];
    const [[code, detail]] = Object.entries(constraints) as [[string, string]];
    const actual = code === 'too_long' && { actual: [...(body[name] as string)].length };
    return [fieldError(name, { ...(contexts![code] as { code: string }), ...actual, detail })];
  });
  if (errors.length > 0) throw new Problem('validation_failed', { errors });
  return body;
}

function notAField(name: string, known: readonly string[], resource: Model) {
  return Object.hasOwn(resource.properties, name)
    ? { code: 'read_only_field', detail: `${name} is read-only.` }
    : {
        code: 'unknown_field',
        detail: `${name.toWellFormed()} is not a field here; the fields are ${known.join(', ')}.`,
      };
}

function fieldError(
  name: string,
  { detail, ...fault }: { readonly code: string; readonly detail: string },
): ProblemDetail {
  const wellFormed = name.toWellFormed();
  return { pointer: pointerTo([wellFormed]), field: wellFormed, ...fault, detail };
}

/** Tells whether the nesting exceeds `deepest` levels. Not recursive, since clients choose the depth. */
export function isDeeperThan(body: object, deepest: number): boolean {
  let level: object[] = [body];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > deepest) return true;
    level = level.flatMap((value) =>
      Object.values(value).filter((child) => typeof child === 'object' && child !== null),
    );
  }
  return false;
}
