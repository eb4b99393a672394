import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import { MemberReads } from '../database/member-reads.js';
import { Logger } from '../runtime/logger.js';
import { Meter } from '../runtime/meter.js';
import { Outbox } from '../runtime/outbox.js';
import { Periodic } from '../runtime/periodic-work.js';
import { LOOK, WebhookDeliveries } from './webhook-deliveries.js';
import { WebhookSecrets, WebhookSender, type Message } from './webhook-sender.js';

const PAUSE_MS = 100;

const PENDING = `SELECT count(*)::integer AS pending FROM webhook_deliveries WHERE status = 'pending'`;
const OLDEST_DUE = `SELECT COALESCE(EXTRACT(epoch FROM now() - min(due.due_at)), 0)::float8 AS seconds
FROM endpoints_due() due JOIN webhook_endpoints e ON e.id = due.endpoint_id WHERE e.failing_since IS NULL`;

/** Creates messages (one instance at a time) and sends them (all instances). */
@Injectable()
export class WebhookWorker implements OnApplicationShutdown {
  readonly #outbox = new Outbox<Message>({
    claim: (most) => this.#claim(most),
    send: (message, stop) => this.#send(message, stop),
    failed: ({ message: reason }) =>
      this.logger.warn({ reason }, 'the result of a webhook message could not be stored'),
  });
  #known: WebhookDeliveries | undefined;
  #moved = false;

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly database: Database,
    private readonly reads: MemberReads,
    private readonly sender: WebhookSender,
    private readonly secrets: WebhookSecrets,
    private readonly meter: Meter,
  ) {
    meter.read('webhook_deliveries_pending', async () => {
      const [row] = await database.prepared<{ pending: number }>(PENDING, []);
      return [[{}, row!.pending]];
    });
    meter.read('webhook_oldest_due_seconds', async () => {
      const [row] = await database.prepared<{ seconds: number }>(OLDEST_DUE, []);
      return [[{}, row!.seconds]];
    });
    meter.read('webhook_deliveries_under_way', () => [[{}, this.#outbox.inProgress.length]]);
  }

  onApplicationShutdown(): Promise<void> {
    return this.#outbox.close();
  }

  @Periodic({ work: 'webhooks', everyMs: PAUSE_MS, failure: 'webhooks could not be sent' })
  async work(end: AbortSignal): Promise<void> {
    if (!this.#moved && this.config.secrets.hasPrevious)
      await this.secrets.moveToCurrentSecret(this.database.dataSource);
    this.#moved = true;
    const [found] = await this.database.prepared<{ behind: boolean; due: boolean }>(LOOK, []);
    let { behind, due } = found!;
    do {
      if (behind) {
        const { made, ...told } = await (await this.#deliveries()).fanOut();
        due ||= made > 0;
        behind = told.behind;
      }
      const claiming = due ? this.#outbox.claim(end) : undefined;
      // While changes remain, does not wait for the claim, and ignores its errors.
      if (behind) claiming?.catch(() => undefined);
      else await claiming;
    } while (behind && !end.aborted);
  }

  async #claim(most: number) {
    const { messages, withheld } = await (await this.#deliveries()).claim(most);
    // An endpoint may read the change at once, and must not get older data from a replica.
    if (messages.length > 0) await this.reads.advance('all');
    this.meter.count('webhook_attempts_total', { outcome: 'withheld' }, withheld);
    return { messages, again: withheld > 0 };
  }

  async #send(message: Message, stop: AbortSignal): Promise<void> {
    const attempt = await this.sender.send(message, stop);
    const deliveries = await this.#deliveries();
    if (!attempt.taken && stop.aborted) {
      await deliveries.release(message);
      return;
    }
    this.meter.observe('webhook_attempt_duration_seconds', {}, attempt.seconds);
    const outcome = await deliveries.finish(message, attempt);
    if (!outcome) return;
    const { status, delaySeconds, disabledBecause } = outcome;
    this.meter.count('webhook_attempts_total', { outcome: status === 'pending' ? 'failed' : status });
    if (status === 'delivered' && message.attempts === 0)
      this.meter.observe('webhook_delay_seconds', {}, delaySeconds);
    if (disabledBecause)
      this.logger.warn(
        { webhook: message.endpoint_id },
        `a webhook was disabled: it ${disabledBecause === 'gone' ? 'responded with 410' : 'had failed for five days'}`,
      );
  }

  async #deliveries(): Promise<WebhookDeliveries> {
    const dataSource = await this.database.background('telling');
    return (this.#known ??= new WebhookDeliveries(dataSource));
  }
}
