import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Response } from 'supertest';

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: string[];
  readonly items?: { readonly $ref?: string; readonly enum?: string[] };
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
  readonly default?: unknown;
  readonly examples?: unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
}

interface Media {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;
}

/** A response. */
export interface Described {
  readonly headers?: object;
  readonly content?: Readonly<Record<string, Media>>;
  readonly links?: Readonly<
    Record<string, { readonly operationId: string; readonly parameters: Record<string, string> }>
  >;
  readonly 'x-response-headers': readonly string[];
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly style?: string;
    readonly explode?: boolean;
    readonly example?: unknown;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Described | { readonly $ref: string }>>;
  readonly 'x-same-as'?: string;
  readonly 'x-required-scope'?: string | null;
  readonly 'x-problems': readonly string[];
}

/** The parts of an OpenAPI document that tests use. */
export interface ApiDocument {
  readonly openapi: string;
  readonly info: object;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Described>>;
  };
}

/** @throws Error if the response to such a request does not match the document */
export type ResponseCheck = (url: string, method: string, response: Response) => void;

/**
 * The checks of this worker's earlier test files, by document: compiling the schemas of a response takes longer than the request,
 * and nearly all files use the same schemas.
 */
const KEPT = Symbol.for('checks of responses');
const global = globalThis as { [KEPT]?: Map<string, ResponseCheck> };
const kept = (global[KEPT] ??= new Map<string, ResponseCheck>());

/** @param prefix of the paths that the document describes */
export function responseCheck(prefix: string, { paths, components }: ApiDocument): ResponseCheck {
  // Other parts of the document, such as this server's URLs, do not affect responses.
  const described = { paths, components: { schemas: components.schemas, responses: components.responses } };
  const key = prefix + JSON.stringify(described);
  const check = kept.get(key) ?? makeCheck(prefix, described);
  kept.set(key, check);
  return check;
}

function makeCheck(prefix: string, document: Pick<ApiDocument, 'paths' | 'components'>): ResponseCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  ajv.addSchema(document as object, 'openapi');
  const templates = Object.keys(document.paths).map((template) => ({
    template,
    pattern: new RegExp(`^${template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  }));

  return (url, method, response) => {
    const [path] = url.split('?') as [string];
    const template = templates.find(({ pattern }) => pattern.test(path))?.template;
    const operation = template && document.paths[template]![method === 'HEAD' ? 'get' : method.toLowerCase()];
    const type = String(response.headers['content-type'] ?? '').split(';')[0]!;
    if (!operation) {
      // Not a documented request: an error must still be a problem document, or have no content.
      if (response.status >= 400 && path.startsWith(prefix))
        compare('#/components/schemas/Problem', response);
      return;
    }
    const found = operation.responses[response.status];
    if (!found) throw new Error(`${method} ${path}: ${response.status} is not documented: ${response.text}`);
    const documented =
      '$ref' in found ? document.components.responses[found.$ref.split('/').at(-1)!]! : found;
    for (const header of [...Object.keys(documented.headers ?? {}), ...documented['x-response-headers']]) {
      const optional =
        (header === 'WWW-Authenticate' && response.status === 403) ||
        (['Link', 'X-Total-Count'].includes(header) && response.body.pagination === undefined);
      if (!optional && response.headers[header.toLowerCase()] === undefined) {
        throw new Error(
          `${method} ${path} ${response.status}: the header ${header} is documented, but absent`,
        );
      }
    }
    if (method === 'HEAD' || response.status === 304) return;
    const { code } = response.body as { code?: string };
    if (response.status >= 400 && !operation['x-problems'].includes(code!))
      throw new Error(`${method} ${path}: ${code} is not documented`);
    const place =
      '$ref' in found
        ? found.$ref.split('/').slice(1)
        : ['paths', template!, method.toLowerCase(), 'responses', String(response.status)];
    const pointer = [...place, 'content', type, 'schema'];
    compare(
      `#/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`,
      response,
    );
  };

  function compare(pointer: string, response: Response): void {
    const validate = ajv.getSchema(`openapi${pointer}`);
    if (!validate) throw new Error(`The document has no ${decodeURIComponent(pointer)}`);
    if (!validate(response.body)) {
      throw new Error(
        `The answer is not what the document says:\n${ajv.errorsText(validate.errors, { separator: '\n' })}\n${response.text}`,
      );
    }
  }
}
