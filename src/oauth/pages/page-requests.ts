import { Inject, Injectable } from '@nestjs/common';
import express from 'express';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { LOGGER } from '../../http/logger.js';
import { addressOf } from '../../values/network.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { faultOf, PageFault } from './page-faults.js';
import { Pages, SECURITY_HEADERS } from './pages.js';
import type { Page } from './pages.js';
import { refusalOf } from '../provider/refusal-reasons.js';
import type { RefusalReason, RefusalWords } from '../provider/refusal-reasons.js';
import { Refusals } from '../provider/refusals.service.js';

/** A form of ours has a few short fields. */
const readForm = express.urlencoded({ extended: false, limit: '16kb', parameterLimit: 50 });

/** What the request's form holds: a field that stands there twice is an array. */
export type Form = Readonly<Record<string, string | string[] | undefined>>;

/** Answers requests for pages: every fault ends in a page, never in a stack. */
@Injectable()
export class PageRequests {
  constructor(
    private readonly database: OauthDatabase,
    private readonly refusals: Refusals,
    private readonly pages: Pages,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Runs `answer` for requests to `route`, its form read; `route` names it in the log in place of the path. */
  handler(
    route: string,
    answer: (request: Request, response: Response, form: Form) => Promise<void>,
  ): RequestHandler {
    return async (request, response) => {
      const { context, headers } = request;
      context.route = route;
      response.set(SECURITY_HEADERS);
      const ip = addressOf(request);
      await this.database.serve({ id: context.id, ip, userAgent: headers['user-agent'] }, async () => {
        try {
          await answer(request, response, await formOf(request, response));
        } catch (error) {
          await this.#answerFault(error, request, response);
        }
      });
    };
  }

  send(response: Response, status: number, page: Page, formTargets: readonly string[] = []): void {
    const { html, headers } = this.pages.render(page, formTargets);
    response
      .status(status)
      .set(headers)
      .end(response.req.method === 'HEAD' ? undefined : html);
  }

  redirect(response: Response, location: string): void {
    response.status(303).set('Location', location).end();
  }

  async #answerFault(error: unknown, request: Request, response: Response): Promise<void> {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { id, route } = request.context;
    const fault = faultOf(error);
    const words = error instanceof PageFault ? wordsOf(error) : refusalOf(error as Error);
    const line = { request_id: id, route, ...words };
    if (fault.status === 500) this.logger.error({ ...line, err: error }, 'page failed');
    else this.logger.info(line, 'page refused');
    if (fault.status === 503) response.set('Retry-After', '1');
    else await this.refusals.keep({ ...words, errorId: id, route: route!, ip: addressOf(request) });
    this.send(response, fault.status, fault.page(id));
  }
}

function formOf(request: Request, response: Response): Promise<Form> {
  return new Promise((resolve, reject) => {
    readForm(request, response, (fault?: unknown) => {
      if (fault) reject(new PageFault(400, 'This did not work', 'The form could not be read.'));
      else resolve({ ...(request.body as Form | undefined) });
    });
  });
}

function wordsOf({ status }: PageFault): RefusalWords {
  const reasons: Record<number, RefusalReason> = { 401: 'sign_in_expired', 403: 'foreign_form' };
  return { error: 'invalid_request', reason: reasons[status] ?? 'malformed_request' };
}
