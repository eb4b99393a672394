import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import { Meter } from '../../runtime/meter.js';
import { Problem } from '../../http/output/problems.js';
import { DatabaseCheck } from './database-check.js';
import { Readiness } from './readiness.js';

/** Health checks for load balancers and orchestrators. */
@Controller()
@Public()
export class HealthController {
  constructor(
    private readonly database: DatabaseCheck,
    private readonly readiness: Readiness,
    meter: Meter,
  ) {
    meter.read('server_ready', () =>
      this.ready().then(
        () => [[{}, 1]],
        () => [[{}, 0]],
      ),
    );
  }

  /** Checks only the process: a restart would not help if the database is unreachable. */
  @Get('livez')
  live(): object {
    return { status: 'ok' };
  }

  @Get('readyz')
  async ready(): Promise<object> {
    if (this.readiness.ending)
      throw new Problem('temporarily_unavailable', { detail: 'The server is shutting down.' });
    const { writable, mismatch } = await this.database.read();
    if (!writable) throw new Problem('temporarily_unavailable', { detail: 'The database is read-only.' });
    if (mismatch) throw new Problem('temporarily_unavailable', { detail: `The database ${mismatch}.` });
    return { status: 'ok' };
  }
}
