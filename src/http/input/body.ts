import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import express, { type Request, type Response } from 'express';
import { Documents, type RequestBody } from '../output/openapi.js';
import { pointerTo, Problem, type ProblemDetail } from '../output/problems.js';
import { nullable, refTo, type Model, type Property } from '../output/schema.js';
import { receiving } from '../pipeline/request-context.js';
import { isHttpUrl, isStorable } from '../../values/string-rules.js';
import type { Length } from '../../values/vocabulary.js';
import type { Fault } from './rules.js';

/** The largest legitimate body, a full profile, has 11 KB. */
const BODY_LIMIT_BYTES = 16_384;
const MOST_FIELDS = 32;
/** The body itself counts as 1. */
const DEEPEST = 8;

const rawReader = (limit: number) => express.raw({ type: () => true, limit });
const readRaw = rawReader(BODY_LIMIT_BYTES);

/** A field of a body that may be absent or null. */
interface BodyField extends Property {
  /** What is wrong with a value that is not null. */
  readonly faultOf: (name: string, value: unknown) => Fault | undefined;
}

type BodyFields = Readonly<Record<string, BodyField>>;

/** The fields of a body that were sent, once they are checked. */
export type BodyOf<Body extends Model> = { readonly [Name in keyof Body['properties']]?: string | null };

/**
 * Injects the body of the request: the fields that were sent, checked. It is read after credential, scope, rate and query were checked.
 *
 * @param resource fields of it that the body does not have cannot be changed: `read_only_field`
 * @throws Problem payload_too_large, unsupported_media_type, invalid_json, validation_failed
 */
export const JsonBody = (fields: Model<BodyFields>, resource: Model): ParameterDecorator => {
  const inject = createParamDecorator(async (_: unknown, context: ExecutionContext): Promise<object> => {
    const http = context.switchToHttp();
    const body = await readJsonObject(http.getRequest<Request>(), http.getResponse<Response>());
    return checkFields(body, fields.properties, resource);
  });
  return (controller, name, index) => {
    documentBody(controller, name!, { content: { 'application/json': { schema: refTo(fields) } } });
    inject()(controller, name, index);
  };
};

function documentBody(controller: object, name: string | symbol, body: Omit<RequestBody, 'required'>): void {
  Documents({
    body: { required: true, ...body },
    problems: ['invalid_json', 'payload_too_large', 'unsupported_media_type', 'validation_failed'],
  })(controller, name, Object.getOwnPropertyDescriptor(controller, name)!);
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

/**
 * Injects the bytes of a body of JSON lines (`application/x-ndjson`), read once everything else was checked. Checking the lines is up
 * to the handler.
 *
 * @param Line what a line is, and `forms` as JSON Schema the forms that it has, for the OpenAPI document
 * @throws Problem invalid_json where it is not compressed as it says, payload_too_large, unsupported_media_type
 */
export const NdjsonBody = (
  Line: Model,
  forms: readonly Readonly<Record<string, unknown>>[],
  mostBytes: number,
): ParameterDecorator => {
  const read = rawReader(mostBytes);
  const inject = createParamDecorator(async (_: unknown, context: ExecutionContext): Promise<Buffer> => {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const bytes = await readBytes(request, http.getResponse<Response>(), read);
    if (
      !/^\s*application\/x-ndjson\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?;?\s*$/i.test(
        request.headers['content-type'] ?? '',
      )
    )
      throw new Problem('unsupported_media_type', {
        detail: 'The request body is not application/x-ndjson.',
      });
    return bytes;
  });
  return (controller, name, index) => {
    documentBody(controller, name!, {
      description: 'One line for each record',
      content: { 'application/x-ndjson': { schema: { allOf: [refTo(Line)], oneOf: [...forms] } } },
    });
    inject()(controller, name, index);
  };
};

async function readBytes(request: Request, response: Response, read = readRaw): Promise<Buffer> {
  await receiving(
    request,
    () =>
      new Promise<void>((resolve, reject) => {
        read(request, response, (error?: unknown) => {
          if (error === undefined || error === null) resolve();
          else reject(bodyProblem(error as { type?: string; status?: number; code?: string }));
        });
      }),
  );
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** Maps errors of the body parser (http-errors with a `type`) to the API's codes. */
function bodyProblem(error: { type?: string; status?: number; code?: string }): Problem {
  if (error.type === 'entity.too.large') {
    // The rest is not read: the connection cannot be used again.
    return new Problem('payload_too_large', { headers: { Connection: 'close' }, cause: error });
  }
  if (error.type === 'encoding.unsupported') return new Problem('unsupported_media_type', { cause: error });
  // Errors of zlib.
  const detail = error.code?.startsWith('Z_')
    ? 'The request body is not what Content-Encoding says.'
    : undefined;
  return new Problem('invalid_json', { cause: error, ...(detail ? { detail } : {}) });
}

function isJson(type: string | undefined): boolean {
  return (
    type !== undefined &&
    /^\s*application\/json\s*(;\s*charset\s*=\s*"?(utf-?8|us-ascii)"?\s*)?;?\s*$/i.test(type)
  );
}

/** Declares a text of so many Unicode code points, or null. */
export const text = ([least, most]: Length, { example }: { example?: string } = {}): BodyField => ({
  schema: nullable({ type: 'string', maxLength: most, ...(example === undefined ? {} : { example }) }),
  required: false,
  faultOf: (name, value) => {
    if (typeof value !== 'string')
      return { code: 'invalid_type', detail: `${name} must be a string or null.` };
    if (!isStorable(value))
      return {
        code: 'invalid_characters',
        detail: `${name} must not contain U+0000 or half of a surrogate pair.`,
      };
    const actual = [...value].length;
    if (actual < least || actual > most)
      return { code: 'too_long', detail: `${name} must have at most ${most} characters.`, max: most, actual };
    return undefined;
  },
});

/** Declares an absolute http(s) URL of so many code points, or null. The server never fetches it. */
export const httpUrl = (length: Length): BodyField => {
  const { faultOf } = text(length);
  return {
    schema: nullable({ type: 'string', maxLength: length[1], format: 'uri' }),
    required: false,
    faultOf: (name, value) =>
      faultOf(name, value) ??
      (isHttpUrl(value as string)
        ? undefined
        : {
            code: 'invalid_url',
            detail: `${name} must be an absolute http or https URL without user and password.`,
          }),
  };
};

/** @throws Problem validation_failed with every fault */
function checkFields(body: Record<string, unknown>, fields: BodyFields, resource: Model): object {
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
  const errors = names.flatMap((name) => {
    const value = body[name];
    if (!Object.hasOwn(fields, name)) return [fieldError(name, notAField(name, resource))];
    const fault = value === null ? undefined : fields[name]!.faultOf(name, value);
    return fault ? [fieldError(name, fault)] : [];
  });
  if (errors.length > 0) throw validationFailed(errors);
  return body;
}

function notAField(name: string, resource: Model): Fault {
  return Object.hasOwn(resource.properties, name)
    ? { code: 'read_only_field', detail: `${name} cannot be changed here.` }
    : { code: 'unknown_field', detail: `${name.toWellFormed()} is not a field of this resource.` };
}

function fieldError(name: string, { detail, ...fault }: Fault): ProblemDetail {
  const wellFormed = name.toWellFormed();
  return { pointer: pointerTo([wellFormed]), field: wellFormed, ...fault, detail };
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

/** Without recursion: the input comes from outside. */
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
