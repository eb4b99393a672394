import type { NestExpressApplication } from '@nestjs/platform-express';
import { Database } from './database/database.js';
import { apiHeaders, isUnderApi } from './http/pipeline/api-headers.js';
import type { ApiAdapter } from './http/pipeline/api.adapter.js';
import { KINDS } from './http/pipeline/front-door.js';
import { refuseBusy } from './http/pipeline/busy.js';
import { compose } from './http/pipeline/compose.js';
import { responseDeadline } from './http/pipeline/response-deadline.js';
import { requestLines, requestLog } from './http/pipeline/request-log.js';
import { Logger } from './http/logger.js';
import { Meter } from './http/meter.js';
import { refuseBusyOauth } from './member-pages/requests/busy-pages.js';
import { PageRoutes } from './member-pages/requests/page-requests.js';
import { OauthRoutes } from './authorization-server/oauth-routes.js';
import { Metrics } from './operations/metrics/metrics.js';
import { ProblemFilter } from './http/output/problem.filter.js';
import { Problem } from './http/output/problems.js';
import { UnknownPage } from './site/unknown-page.js';
import { Config } from './config/config.js';

/** Sets up everything between the socket and the controllers, in order; used by main and by the tests. */
export function configureApp(app: NestExpressApplication): void {
  const config = app.get(Config);
  const filter = app.get(ProblemFilter);
  const metrics = app.get(Metrics);
  app.set('trust proxy', config.trustProxy);
  const { refusals, admissions } = (app.getHttpAdapter() as unknown as ApiAdapter).frontDoor;
  refusals.api = refusals.platform = refuseBusy(config.publicUrl);
  refusals.oauth = refusals.pages = refuseBusyOauth;
  const meter = app.get(Meter);
  for (const kind of KINDS) {
    meter.read('overload_refusals_total', () => [[{ reason: kind }, admissions[kind].refused]]);
    meter.read('admission', () => {
      const { atWork, waiting, held } = admissions[kind].state();
      return [
        [{ kind, state: 'at_work' }, atWork],
        [{ kind, state: 'waiting' }, waiting],
        [{ kind, state: 'unread_connections' }, held],
      ];
    });
  }
  const ofApi = compose(apiHeaders, responseDeadline(config.databaseDeadlines.answer, filter));
  const ofOthers = compose(app.get(OauthRoutes).handler(), app.get(PageRoutes).handler());
  app.use(
    compose(
      config.logFormat === 'pretty' ? linesForPeople(app, config) : requestLog(app.get(Logger)),
      ...(metrics.enabled ? [metrics.observe()] : []),
      (request, response, next) => {
        const { path, valid } = request.context;
        if (valid) (isUnderApi(path) ? ofApi : ofOthers)(request, response, next);
        else filter.answer(new Problem('not_found'), request, response);
      },
    ),
  );
  app.useGlobalFilters(filter);
  const unknownPage = app.get(UnknownPage);
  filter.unknownPage = (request, response) => unknownPage.answer(request, response);
}

function linesForPeople(app: NestExpressApplication, { logLevel }: Config) {
  const database = app.get(Database);
  const write = ['warn', 'error', 'fatal', 'silent'].includes(logLevel)
    ? () => undefined
    : (line: string) => void process.stdout.write(`${line}\n`);
  return requestLines(write, async (userId) => {
    const [user] = await database.read<{ username: string }>(
      { name: 'read-username', text: 'SELECT username FROM users WHERE id = $1' },
      [userId],
    );
    return user?.username ?? String(userId);
  });
}
