import { Catch, Injectable, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Logger } from '../../http/logger.js';
import { ProblemFilter } from '../../http/output/problem.filter.js';
import { addressOf } from '../../values/network.js';
import {
  refusalOf,
  type RefusalReason,
  type RefusalWords,
} from '../../authorization-server/failures/refusal-reasons.js';
import { Refusals } from '../../authorization-server/failures/refusals.js';
import { pageFaultOf, PageFault } from '../../authorization-server/failures/page-fault.js';
import { Pages } from '../rendering/pages.js';

/** Another page, or a redirect to one, was sent in place of what was wanted: there is nothing left to do. */
export class AnsweredOtherwise extends Error {}

/** Turns any error thrown by a page into an error page for members. Stack traces go only to the log. */
@Catch()
@Injectable()
export class PageFilter implements ExceptionFilter {
  constructor(
    private readonly refusals: Refusals,
    private readonly pages: Pages,
    private readonly problems: ProblemFilter,
    private readonly logger: Logger,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    if (error instanceof AnsweredOtherwise) return;
    const http = host.switchToHttp();
    const [request, response] = [http.getRequest<Request>(), http.getResponse<Response>()];
    // Nest does not await filters: an unhandled error here would end the process.
    this.#answer(error, request, response).catch((failure: unknown) =>
      this.problems.answer(failure, request, response),
    );
  }

  async #answer(error: unknown, request: Request, response: Response): Promise<void> {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { id, route } = request.context;
    const fault = pageFaultOf(error);
    const words = error instanceof PageFault ? wordsOf(error) : refusalOf(error as Error);
    const detail = error instanceof PageFault ? error.detail : undefined;
    const line = { request_id: id, route, ...words, ...(detail === undefined ? {} : { detail }) };
    if (fault.status === 500) this.logger.error({ ...line, err: error }, 'page failed');
    else this.logger.info(line, 'page refused');
    this.refusals.count(fault.code ?? words.error);
    if (fault.status === 503) response.set('Retry-After', '1');
    else await this.refusals.keep({ ...words, errorId: id, route: route!, ip: addressOf(request) });
    this.pages.send(response, fault.status, fault.page(id));
  }
}

function wordsOf({ status, code, reason }: PageFault): RefusalWords {
  const reasons: Record<number, RefusalReason> = {
    401: 'sign_in_expired',
    403: 'foreign_form',
    429: 'too_many_requests',
  };
  return { error: code ?? 'invalid_request', reason: reason ?? reasons[status] ?? 'malformed_request' };
}
