import { Inject, Injectable } from '@nestjs/common';
import express from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { errors } from 'oidc-provider';
import type { Logger } from 'pino';
import { isUnavailable } from '../database/unavailable.js';
import { LOGGER } from '../http/logger.js';
import { addressOf } from '../http/network.js';
import { OauthDatabase } from './oauth-database.js';
import { Pages, SECURITY_HEADERS } from './pages/pages.js';
import type { Page } from './pages/pages.js';

/** A form of ours has a few short fields. */
const readForm = express.urlencoded({ extended: false, limit: '16kb', parameterLimit: 50 });

/** What a page cannot do, in words for the member; the log has the reason. */
export class PageFault extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    message: string,
  ) {
    super(message);
  }
}

/** What the request's form holds: a field that stands there twice is an array. */
export type Form = Readonly<Record<string, string | string[] | undefined>>;

/** Answers requests for pages: every fault ends in a page, never in a stack. */
@Injectable()
export class PageRequests {
  constructor(
    private readonly database: OauthDatabase,
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
          this.#answerFault(error, request, response);
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

  #answerFault(error: unknown, request: Request, response: Response): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { id, route } = request.context;
    const fault = faultOf(error);
    const line = { request_id: id, route, reason: (error as Error).message };
    if (fault.status === 500) this.logger.error({ ...line, err: error }, 'page failed');
    else this.logger.info(line, 'page refused');
    if (fault.status === 503) response.set('Retry-After', '1');
    this.send(response, fault.status, {
      name: 'error',
      title: fault.title,
      message: fault.message,
      error_id: id,
    });
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

function faultOf(error: unknown): PageFault {
  if (error instanceof PageFault) return error;
  if (error instanceof errors.SessionNotFound) {
    return new PageFault(400, 'This sign-in has expired', 'Go back to the app and sign in from there again.');
  }
  if (isUnavailable(error))
    return new PageFault(503, 'Please try again', 'The server is busy. Try again in a moment.');
  if (error instanceof errors.OIDCProviderError && error.expose)
    return new PageFault(400, 'This did not work', 'Go back to the app and try again.');
  return new PageFault(500, 'This did not work', 'The server failed in a way that is not your fault.');
}
