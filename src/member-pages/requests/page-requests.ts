import {
  applyDecorators,
  Catch,
  createParamDecorator,
  Inject,
  Injectable,
  SetMetadata,
  UseFilters,
  type ArgumentsHost,
  type ExceptionFilter,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import express, { type Request, type RequestHandler, type Response as ServerResponse } from 'express';
import { Csrf } from '../../accounts/browser-cookies.js';
import { Public } from '../../auth/auth.decorators.js';
import { UnknownKey } from '../../auth/api-keys/api-keys.service.js';
import { pageFaultOf, PageFault } from '../../authorization-server/failures/page-fault.js';
import {
  classify,
  type RejectionReason,
  type RejectionWords,
} from '../../authorization-server/reasons/rejection-reasons.js';
import { Rejections } from '../../authorization-server/failures/rejections.js';
import { isForPrograms } from '../../authorization-server/provider/provider.js';
import { OauthDatabase, OauthRequest } from '../../authorization-server/requests/oauth-database.js';
import { UnknownClient } from '../../clients/registrations.js';
import { Logger } from '../../runtime/logger.js';
import { ProblemFilter } from '../../http/output/problem.filter.js';
import { Problem } from '../../http/output/problems.js';
import { RETRY_AFTER_SECONDS, sendBusy } from '../../http/pipeline/busy.js';
import type { RejectBusy } from '../../http/pipeline/entry-point.js';
import { LimitsByAddress, OutsideApi } from '../../http/pipeline/outside-api.js';
import { receiving, requestOf, responseOf } from '../../http/pipeline/request-context.js';
import { pathPattern, RouteTable, type Route } from '../../http/route-table.js';
import { SECURITY_HEADERS } from '../../layout/layout.js';
import { addressOf } from '../../values/network.js';
import { trimmed } from '../../values/string-rules.js';
import { Pages, redirect } from '../rendering/pages.js';
import { ENGLISH, LANGUAGES, chooseLanguage, textsIn } from '../rendering/wording.js';

/** Pattern of a path parameter; a path with any other parameter matches no page. */
const PARAMETER = '[\\w-]{1,100}';

@Injectable()
export class PageRoutes {
  #paths: ReturnType<typeof collectPaths> | undefined;

  constructor(
    private readonly routeTable: RouteTable,
    private readonly database: OauthDatabase,
    private readonly problems: ProblemFilter,
    private readonly pages: Pages,
  ) {}

  handler(): RequestHandler {
    return (request, response, next) => {
      const { context, method } = request;
      this.#paths ??= collectPaths(this.routeTable.routes);
      const found = this.#paths.filter(({ any }) => any.test(context.path));
      const page = found.find(({ plain }) => plain.test(context.path));
      if (found.length === 0) next();
      else if (page === undefined) this.problems.answer(new Problem('not_found'), request, response);
      else if (page.methods.includes(method)) {
        context.route = page.route;
        context.language = chooseLanguage(undefined, request.headers);
        response.set(SECURITY_HEADERS);
        if (this.pages.switchLanguage(request, response)) return;
        void this.database.serve(OauthRequest.from(request), () => Promise.resolve(next()));
      } else {
        // If a browser opens a form's URL (history, reload), redirects to the nearest parent path that has a page.
        const above = method === 'GET' || method === 'HEAD' ? this.#pageAbove(context.path) : undefined;
        if (above !== undefined && this.pages.switchLanguage(request, response, above)) return;
        if (above === undefined) this.problems.answerMethod(page.methods, request, response);
        else {
          context.route = page.route;
          redirect(response.set(SECURITY_HEADERS), above);
        }
      }
    };
  }

  #pageAbove(path: string): string | undefined {
    const above = path.slice(0, path.lastIndexOf('/'));
    if (above === '') return undefined;
    const isRead = this.#paths!.some(({ methods, plain }) => methods.includes('GET') && plain.test(above));
    return isRead ? above : this.#pageAbove(above);
  }
}

/** `any` matches each path that Express would route to the page; `plain` only those whose parameters match {@link PARAMETER}. */
function collectPaths(routes: readonly Route[]) {
  const pages = routes.filter(({ controller }) => Reflect.hasMetadata(PAGE, controller));
  return [...Map.groupBy(pages, ({ path }) => path)].map(([route, ofPath]) => ({
    route,
    methods: ofPath.flatMap(({ method }) => (method === 'GET' ? [method, 'HEAD'] : [method])),
    any: pathPattern(route),
    plain: pathPattern(route, PARAMETER),
  }));
}

/** The fields of a form; a field that was sent twice is an array. */
export type Form = Readonly<Record<string, string | string[] | undefined>>;

/** Returns a single field without surrounding white space; empty if it is missing or was sent twice. */
export function fieldText(value: Form[string]): string {
  return trimmed(passwordIn(value));
}

/** Returns a password as sent, including white space. */
export function passwordIn(value: Form[string]): string {
  return typeof value === 'string' ? value : '';
}

/** Rejects a form that does not come from our pages in this browser. @throws PageFault 403 */
export function requireOwnForm(csrf: Csrf, request: Request, form: Form): void {
  if (!csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
}

const readForm = express.urlencoded({ extended: false, limit: '16kb', parameterLimit: 50 });
const readUpload = express.raw({ type: 'multipart/form-data', limit: '96kb' });

/** Reads a page's {@link Form}; empty if there is none. @throws PageFault if the form is unreadable */
export async function sentForm(context: ExecutionContext): Promise<Form> {
  const { body } = await withBody(context, readForm);
  return { ...(body as Form | undefined) };
}

export const FormBody = createParamDecorator((_: unknown, context) => sentForm(context));

/** Reads a form with a file (RFC 7578). @throws PageFault if the form is unreadable */
export const UploadBody = createParamDecorator(async (_: unknown, context): Promise<FormData> => {
  const { body, headers } = await withBody(context, readUpload);
  try {
    if (!Buffer.isBuffer(body)) throw new Error('not a form with a file');
    const type = { 'Content-Type': headers['content-type']! };
    return await new Response(new Uint8Array(body), { headers: type }).formData();
  } catch {
    throw new PageFault(400, 'unreadableForm');
  }
});

async function withBody(context: ExecutionContext, read: RequestHandler): Promise<Request> {
  const request = requestOf(context);
  const parsed = () =>
    new Promise<void>((resolve, reject) => {
      void read(request, responseOf(context), (fault?: unknown) => {
        if (fault) reject(new PageFault(400, 'unreadableForm'));
        else resolve();
      });
    });
  await receiving(request, parsed);
  return request;
}

/** Makes a parameter decorator that calls a service through a pipe, since decorators cannot inject services. */
export function asking<Service, Data extends readonly unknown[]>(
  service: Type<Service>,
  ask: (service: Service, context: ExecutionContext, ...data: Data) => Promise<unknown>,
) {
  @Injectable()
  class Asking implements PipeTransform<(service: Service) => Promise<unknown>> {
    constructor(@Inject(service) private readonly service: Service) {}

    transform(question: (service: Service) => Promise<unknown>): Promise<unknown> {
      return question(this.service);
    }
  }
  const decorate = createParamDecorator(
    (data: Data, context) => (found: Service) => ask(found, context, ...data),
  );
  return (...data: Data) => decorate(data, Asking);
}

/** Parameter decorator: the sent {@link Form}, after {@link requireOwnForm}. */
export const OwnForm = asking(Csrf, async (csrf, context) => {
  const form = await sentForm(context);
  requireOwnForm(csrf, requestOf(context), form);
  return form;
});

/** Thrown after the server sent another page or a redirect: the caller must not respond. */
export class AnsweredOtherwise extends Error {}

/** Sends an error page for an error of a page. Only the log contains stack traces. */
@Catch()
@Injectable()
class PageFilter implements ExceptionFilter {
  constructor(
    private readonly refusals: Rejections,
    private readonly pages: Pages,
    private readonly problems: ProblemFilter,
    private readonly logger: Logger,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    if (error instanceof AnsweredOtherwise) return;
    const [request, response] = [requestOf(host), responseOf(host)];
    // Nest does not await filters: an unhandled error here would end the process.
    this.#answer(error, request, response).catch((failure: unknown) =>
      this.problems.answer(failure, request, response),
    );
  }

  async #answer(thrown: unknown, request: Request, response: ServerResponse): Promise<void> {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    // Another member's app or key gets the same response as a missing app or key.
    const isUnknown = thrown instanceof UnknownClient || thrown instanceof UnknownKey;
    const error = isUnknown ? nothingHere() : thrown;
    const { id, route } = request.context;
    const fault = pageFaultOf(error);
    const words = error instanceof PageFault ? wordsOf(error) : classify(error as Error);
    const detail = error instanceof PageFault ? error.detail : undefined;
    const line = { request_id: id, route, ...words, ...(detail === undefined ? {} : { detail }) };
    if (fault.status === 500) this.logger.error({ ...line, err: error }, 'page failed');
    else this.logger.info(line, 'page rejected');
    this.refusals.count(fault.code ?? words.error);
    if (fault.status === 503) response.set('Retry-After', '1');
    else await this.refusals.keep({ ...words, errorId: id, route: route!, ip: addressOf(request) });
    this.pages.send(response, fault.status, fault.page(id));
  }
}

/** Makes the 404 fault for a missing page, or a page of another member. */
export function nothingHere(): PageFault {
  return new PageFault(404, 'nothingHere');
}

function wordsOf({ status, code, reason }: PageFault): RejectionWords {
  const reasons: Record<number, RejectionReason> = {
    401: 'sign_in_expired',
    403: 'foreign_form',
    429: 'too_many_requests',
  };
  return { error: code ?? 'invalid_request', reason: reason ?? reasons[status] ?? 'malformed_request' };
}

const PAGE = 'oauth:page';

/** Marks a controller of members' pages, which checks the sign-in itself. */
export const ServesPages = () =>
  applyDecorators(SetMetadata(PAGE, true), Public(), OutsideApi(), LimitsByAddress(), UseFilters(PageFilter));

/** 503 pages without a style sheet, so that rejecting requests stays cheap. */
const BUSY_PAGES = new Map(
  LANGUAGES.map((language) => {
    const [title, message] = textsIn(language).faults.busy;
    return [
      language,
      `<!doctype html><html lang="${language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
        `<title>${title}</title><h1>${title}</h1><p>${message}</p><p>Error id: `,
    ];
  }),
);
const BUSY_JSON = JSON.stringify({
  error: 'temporarily_unavailable',
  error_description: ENGLISH.faults.busy[1],
}).slice(0, -1);
const busyHeaders = (more: Readonly<Record<string, string>>) =>
  Object.entries({ ...SECURITY_HEADERS, 'Retry-After': RETRY_AFTER_SECONDS, ...more }).flat();
const BUSY_PAGE_HEADERS = busyHeaders({
  Vary: 'Accept-Language, Cookie',
  'Content-Type': 'text/html; charset=utf-8',
});
const BUSY_JSON_HEADERS = busyHeaders({
  'Content-Type': 'application/json; charset=utf-8',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'Retry-After',
});

/** Responds 503 when the process is overloaded: JSON to apps, a page to browsers. */
export const rejectBusyOauth: RejectBusy = (request, response) => {
  const { id, path } = request.context; // the id consists of letters, digits, dots, dashes and underscores
  const { accept } = request.headers;
  // Browsers accept HTML when they open a page; other programs usually do not.
  if (isForPrograms(path) || accept?.includes('text/html') !== true)
    sendBusy(request, response, `${BUSY_JSON},"error_id":"${id}"}`, BUSY_JSON_HEADERS);
  else {
    const page = BUSY_PAGES.get(chooseLanguage(undefined, request.headers))!;
    sendBusy(request, response, `${page}${id}</p>`, BUSY_PAGE_HEADERS);
  }
};
