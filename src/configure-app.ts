import type { NestExpressApplication } from '@nestjs/platform-express';
import { CONFIG } from './config/config.js';
import type { Config } from './config/config.js';
import { OpenApiDocument } from './features/openapi/openapi-document.js';
import { apiHeaders, isUnderApi, tolerateBadEncoding } from './http/api-headers.js';
import { beginRequest } from './http/request-context.js';
import { inTurn } from './http/in-turn.js';
import { answerDeadline } from './http/answer-deadline.js';
import { requestLog } from './http/request-log.js';
import { LOGGER } from './http/logger.js';
import { oauthRoutes } from './oauth/routes.js';
import { Metrics } from './operations/metrics/metrics.service.js';
import { ProblemFilter } from './http/problem.filter.js';

/** Everything between the socket and the controllers, in order; used by main and by the tests. */
export function configureApp(app: NestExpressApplication): void {
  const config = app.get<Config>(CONFIG);
  const filter = app.get(ProblemFilter);
  const metrics = app.get(Metrics);
  app.set('trust proxy', config.trustProxy);
  const ofApi = inTurn(
    apiHeaders,
    tolerateBadEncoding,
    answerDeadline(config.databaseDeadlines.answer, filter),
  );
  const ofOthers = inTurn(oauthRoutes(app), tolerateBadEncoding);
  app.use(
    inTurn(
      beginRequest,
      requestLog(app.get(LOGGER)),
      ...(metrics.enabled ? [metrics.observe()] : []),
      (request, response, next) =>
        (isUnderApi(request.context.path) ? ofApi : ofOthers)(request, response, next),
    ),
  );
  app.useGlobalFilters(filter);
  app.get(OpenApiDocument).describe(app);
}
