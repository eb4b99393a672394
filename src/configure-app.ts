import type { NestExpressApplication } from '@nestjs/platform-express';
import { CONFIG } from './config/config.js';
import type { Config } from './config/config.js';
import { OpenApiDocument } from './features/openapi/openapi-document.js';
import { API_PREFIX, apiHeaders, tolerateBadEncoding } from './http/api-headers.js';
import { beginRequest } from './http/request-context.js';
import { answerDeadline } from './http/answer-deadline.js';
import { requestLog } from './http/request-log.js';
import { LOGGER } from './http/logger.js';
import { mountOauth } from './oauth/mount.js';
import { Metrics } from './operations/metrics/metrics.service.js';
import { ProblemFilter } from './http/problem.filter.js';

/** Everything between the socket and the controllers, in order; used by main and by the tests. */
export function configureApp(app: NestExpressApplication): void {
  const config = app.get<Config>(CONFIG);
  const filter = app.get(ProblemFilter);
  app.set('trust proxy', config.trustProxy);
  app.use(beginRequest);
  app.use(requestLog(app.get(LOGGER)));
  const metrics = app.get(Metrics);
  if (metrics.enabled) app.use(metrics.observe());
  mountOauth(app);
  app.use(API_PREFIX, apiHeaders);
  app.use(tolerateBadEncoding);
  app.use(API_PREFIX, answerDeadline(config.databaseDeadlines.answer, filter));
  app.useGlobalFilters(filter);
  app.get(OpenApiDocument).describe(app);
}
