import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import { Database } from '../../database/database.js';
import { MIGRATIONS } from '../../database/data-source.js';
import { Problem } from '../../http/problems.js';
import { Readiness } from './readiness.js';

/** For balancers and orchestrators. */
@Controller()
@Public()
export class HealthController {
  constructor(
    private readonly database: Database,
    private readonly readiness: Readiness,
  ) {}

  /** The process answers: nothing else is looked at, so that a database that is away restarts no server. */
  @Get('livez')
  live(): object {
    return { status: 'ok' };
  }

  /** Requests may be sent here: the database answers and can be written to, the schema fits, no end is near. */
  @Get('readyz')
  async ready(): Promise<object> {
    if (this.readiness.ending)
      throw new Problem('temporarily_unavailable', { detail: 'The server is shutting down.' });
    const [state] = await this.database.rows<{ writable: boolean; migrated: number }>(
      `SELECT current_setting('transaction_read_only') = 'off' AS writable,
         (SELECT count(*) FROM migrations WHERE name = ANY ($1)) AS migrated`,
      [MIGRATIONS.map((migration) => migration.name)],
    );
    if (!state!.writable)
      throw new Problem('temporarily_unavailable', { detail: 'The database cannot be written to.' });
    if (state!.migrated < MIGRATIONS.length) {
      throw new Problem('temporarily_unavailable', { detail: 'The database lacks migrations.' });
    }
    return { status: 'ok' };
  }
}
