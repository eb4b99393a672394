import {
  Catch,
  Injectable,
  NotFoundException,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { isUnavailable } from '../../database/postgres/unavailable.js';
import { API_PREFIX, SHARED_HEADERS } from '../pipeline/api-headers.js';
import { RETRY_AFTER_SECONDS } from '../pipeline/busy.js';
import { requestOf, responseOf } from '../pipeline/request-context.js';
import { Logger } from '../../runtime/logger.js';
import { methodNotAllowed, Problem } from './problems.js';
import { RouteTable } from '../route-table.js';
import { Config } from '../../config/config.js';
import { withoutSecrets } from '../../values/secret-forms.js';

type Headers = Readonly<Record<string, string>>;

/** Converts thrown values into `application/problem+json` (RFC 9457), or into a page for browsers. Responses contain no stack traces. */
@Catch()
@Injectable()
export class ProblemFilter implements ExceptionFilter {
  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly routeTable: RouteTable,
  ) {}

  /** Responds with a page instead of the problem, if the client is a browser. Set at startup. @returns whether it has responded */
  page: (problem: Problem, headers: Headers, request: Request, response: Response) => boolean = () => false;

  catch(error: unknown, host: ArgumentsHost): void {
    this.answer(error, requestOf(host), responseOf(host));
  }

  answer(error: unknown, request: Request, response: Response): void {
    if (response.headersSent) {
      if (!response.writableEnded) response.destroy();
      return;
    }
    const problem = this.problemOf(error, request);
    if (problem === undefined) {
      response.writeHead(204, { Allow: this.routeTable.methodsAt(request.context.path).join(', ') }).end();
      return;
    }
    const { definition, detail, options } = problem;
    const { code, status, title, meaning } = definition;
    const isAway = code === 'temporarily_unavailable';
    const headers = { ...options.headers, ...(isAway ? { 'Retry-After': RETRY_AFTER_SECONDS } : {}) };
    if (this.page(problem, headers, request, response)) return;
    recordProblem(problem, request);
    const body = encodeFacts({
      type: `${this.config.publicUrl}${API_PREFIX}/problems/${code}`,
      title,
      status,
      detail: detail ?? meaning,
      instance: request.context.path,
      code,
      request_id: request.context.id,
      errors: options.errors,
      ...options.extensions,
    });
    response.writeHead(status, {
      ...SHARED_HEADERS, // even if the route does not set them (docs/api-contract.md §8: on every route)
      ...headers,
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  /** Responds to OPTIONS outside the API, and rejects other methods. @param methods the methods that the path supports */
  answerMethod(methods: readonly string[], request: Request, response: Response): void {
    if (request.method !== 'OPTIONS') {
      this.answer(methodNotAllowed(methods), request, response);
      return;
    }
    const allow = methods.join(', ');
    response.setHeader('Allow', allow);
    response.setHeader('Content-Length', Buffer.byteLength(allow));
    response.setHeader('Content-Type', 'text/plain');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.end(allow);
  }

  /** Converts an error into a problem, and logs unexpected errors. @returns undefined for OPTIONS on an existing path */
  problemOf(error: unknown, request: Request): Problem | undefined {
    if (error instanceof Problem) return error;
    if (error instanceof NotFoundException) {
      const methods = this.routeTable.methodsAt(request.context.path);
      if (methods.length === 0) return new Problem('not_found');
      if (request.method === 'OPTIONS') return undefined;
      return methodNotAllowed(methods);
    }
    const { id: request_id } = request.context;
    if (isUnavailable(error)) {
      this.logger.warn({ request_id, reason: (error as Error).message }, 'temporarily unavailable');
      return new Problem('temporarily_unavailable', { cause: error });
    }
    const { code } = error as { code?: unknown };
    if (typeof code === 'string' && /^22...$/.test(code)) {
      // PostgreSQL rejected a value that the server should have checked; the caller can correct it.
      this.logger.error({ request_id, err: error }, 'a value reached the database unchecked');
      return new Problem('invalid_parameter', { cause: error });
    }
    this.logger.error({ request_id, err: error }, 'request failed');
    return new Problem('internal_error', { cause: error });
  }
}

/** Encodes facts of a problem as JSON, without secrets: the path, or a name that the caller chose, could be one. */
export const encodeFacts = (facts: object): string => withoutSecrets(JSON.stringify(facts));

/** Records a request's problem for the log, the metrics and the app's developer. */
export function recordProblem(problem: Problem, { context }: Pick<Request, 'context'>): void {
  context.problem = problem.definition.code;
  context.concerns = concernOf(problem);
}

function concernOf({ options: { errors, extensions } }: Problem): string | undefined {
  const [first] = errors ?? [];
  if (first) return 'parameter' in first ? first.parameter : first.pointer;
  const scope = extensions?.required_scope;
  return typeof scope === 'string' ? scope : undefined;
}
