import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { eventValues, recordEventIf } from '../../audit/audit.js';
import { NOTICES, type NoticeType } from '../../audit/notices.js';
import { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { keyed } from '../../database/sql.js';
import { Logger } from '../../runtime/logger.js';
import { MAX_SENDING_MS, Mailer, type Mail } from '../../runtime/mailer.js';
import { Meter } from '../../runtime/meter.js';
import { Outbox, RETRY_AFTER } from '../../runtime/outbox.js';
import { Periodic } from '../../runtime/periodic-work.js';
import { SECURITY_PATH } from '../rendering/pages.js';
import { clip, DateTimes, fill, LANGUAGES, textsIn } from '../rendering/wording.js';
import { NoticeChoices } from './notice-choices.js';

const PAUSE_MS = 1_000;
/** Maximum concurrent emails of this process, separately for bulk and urgent emails. */
const MAX_CONCURRENT = 4;
/** Seconds after which a claimed email is due again if its outcome is not recorded. */
const LEASE_SECONDS = (2 * MAX_SENDING_MS) / 1_000;
const MAX_WAIT = `interval '3 days'`;
/** Pause in ms after an error without a response from the mail server. */
const AWAY_MS = 5_000;
const MAX_NAME_LENGTH = 60;

const LOOK =
  'SELECT EXISTS (SELECT FROM notice_emails WHERE is_bulk IN (true, false) AND due_at <= now()) AS due';

const due = (isBulk: boolean, limit: string) => `SELECT id FROM (SELECT id FROM notice_emails
    WHERE is_bulk = ${isBulk} AND due_at <= now() ORDER BY due_at, id LIMIT ${limit} FOR UPDATE SKIP LOCKED) ${isBulk ? 'bulk' : 'urgent'}`;

/** Claims due emails: at most $1 urgent emails and $2 bulk emails. */
const CLAIM = `WITH due AS MATERIALIZED (
  ${due(false, '$1')} UNION ALL ${due(true, '$2')}
), claimed AS (
  UPDATE notice_emails SET due_at = now() + make_interval(secs => ${LEASE_SECONDS}), attempts = attempts + 1
  WHERE id = ANY (ARRAY(SELECT id FROM due)) RETURNING *
)
SELECT n.id, n.user_id, n.notice, n.name, n.is_bulk, n.attempts, api_time(n.created_at) AS at,
  n.created_at <= now() - ${MAX_WAIT} AS is_over, u.username, CASE WHEN u.disabled_at IS NULL AND NOT EXISTS (
    SELECT FROM muted_notices m WHERE m.user_id = n.user_id AND m.notice = n.notice) THEN u.email END AS address,
  (SELECT e.details->>'language' FROM auth_events e WHERE e.user_id = n.user_id AND e.type = 'sign_in.succeeded'
    ORDER BY e.occurred_at DESC, e.id DESC LIMIT 1) AS language
FROM claimed n LEFT JOIN ${keyed('users u', 'u.id = n.user_id')}`;

const DONE = 'DELETE FROM notice_emails WHERE id = $1';
const END = `WITH gone AS (DELETE FROM notice_emails WHERE id = $1 AND attempts = $2 RETURNING user_id
), told AS (${recordEventIf('gone', 3)}) SELECT FROM gone`;
const AGAIN = `UPDATE notice_emails SET due_at = LEAST(now() + make_interval(secs => $3), created_at + ${MAX_WAIT})
WHERE id = $1 AND attempts = $2`;

interface NoticeEmail {
  readonly id: number;
  readonly user_id: number;
  readonly notice: NoticeType;
  readonly name: string | null;
  readonly is_bulk: boolean;
  /** Number of started attempts, including the current attempt. */
  readonly attempts: number;
  readonly at: string;
  readonly is_over: boolean;
  readonly username: string;
  /** null if the member is disabled, muted this notice, or has no email address. */
  readonly address: string | null;
  readonly language: string | null;
}

/** Pages to which the emails link; default: {@link SECURITY_PATH}. */
const PAGES: Partial<Record<NoticeType, string>> = {
  'consent.granted': '/account/apps',
  'client.reviewed': '/developer',
  'access.ending': '/account/apps',
  'key.created': '/account/keys',
  'key.rotated': '/account/keys',
  'key.ending': '/account/keys',
  'calendar_link.created': '/account/calendar',
};

/** Emails the notices that the database queues (schema/notices.sql), if a mail server is configured. */
@Injectable()
export class NoticeEmails implements OnApplicationShutdown {
  readonly #outbox = new Outbox<NoticeEmail>({
    claim: () => this.#claim(),
    send: (email, stop) => this.#send(email, stop),
    failed: ({ message: reason }) =>
      this.logger.warn({ reason }, 'the outcome of an email could not be recorded'),
  });
  /** Time at which sending resumes after a pause, by `performance.now()`. */
  #resumeAt = 0;

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly meter: Meter,
    private readonly database: Database,
    private readonly mailer: Mailer,
    private readonly choices: NoticeChoices,
  ) {}

  onApplicationShutdown(): Promise<void> {
    return this.#outbox.close();
  }

  @Periodic({ work: 'notices', everyMs: PAUSE_MS, failure: 'notices could not be emailed' })
  async work(end: AbortSignal): Promise<void> {
    if (!this.config.mail || performance.now() < this.#resumeAt) return;
    const [found] = await this.database.prepared<{ due: boolean }>(LOOK, []);
    if (found!.due) await this.#outbox.claim(end);
  }

  async #claim(): Promise<{ messages: NoticeEmail[] }> {
    if (performance.now() < this.#resumeAt) return { messages: [] };
    const bulk = this.#outbox.inProgress.filter(({ is_bulk }) => is_bulk).length;
    const urgent = this.#outbox.inProgress.length - bulk;
    const free = [MAX_CONCURRENT - urgent, MAX_CONCURRENT - bulk];
    return { messages: await this.database.prepared<NoticeEmail>(CLAIM, free) };
  }

  async #send(email: NoticeEmail, stop: AbortSignal): Promise<void> {
    const { id, user_id: userId, notice, attempts, address, is_over } = email;
    if (address === null) return void (await this.database.prepared(DONE, [id]));
    if (is_over) {
      const details = { notice, attempts: attempts - 1 };
      const event = { type: 'notice.undelivered', actor: 'system', userId, details } as const;
      await this.database.prepared(END, [id, attempts, ...eventValues(event)]);
      this.meter.count('notice_emails_total', { outcome: 'undelivered' });
      return;
    }
    try {
      await this.mailer.send(this.#mailOf(email, address), stop);
    } catch (error) {
      if (stop.aborted) return void (await this.database.prepared(AGAIN, [id, attempts, 0]));
      const { code, responseCode } = error as { code?: string; responseCode?: number };
      if (responseCode === undefined) this.#resumeAt = performance.now() + AWAY_MS;
      // The SMTP server’s error text may contain the email address, so the log omits it.
      this.logger.warn(
        { notice_email: id, reason: code, status: responseCode },
        'a notice could not be emailed',
      );
      this.meter.count('notice_emails_total', { outcome: 'failed' });
      const wait = RETRY_AFTER[attempts - 1] ?? RETRY_AFTER.at(-1);
      return void (await this.database.prepared(AGAIN, [id, attempts, wait]));
    }
    this.meter.count('notice_emails_total', { outcome: 'sent' });
    await this.database.prepared(DONE, [id]);
  }

  #mailOf({ id, user_id, notice, name, at, username, ...email }: NoticeEmail, to: string): Mail {
    const { publicUrl, platformName } = this.config;
    const { host } = new URL(publicUrl);
    const { canMute } = NOTICES[notice];
    const { notices, locale } = textsIn(LANGUAGES.find((known) => known === email.language) ?? LANGUAGES[0]!);
    const words = {
      platform: platformName ?? host,
      username,
      name: name === null ? '' : clip(name, MAX_NAME_LENGTH),
      page: `${publicUrl}${PAGES[notice] ?? SECURITY_PATH}`,
      link: canMute ? `${publicUrl}${this.choices.linkTo(user_id, notice)}` : '',
    };
    const { hello, events, check, more, longer, result, mute } = notices.mail;
    const ends: Partial<Record<NoticeType, string>> = {
      'access.ending': longer,
      'client.reviewed': result,
      'key.ending': more,
    };
    const end = ends[notice] ?? check;
    const parts = [
      hello,
      events[notice],
      new DateTimes(locale).timestamp(at).minute,
      end,
      ...(canMute ? [mute] : []),
    ];
    return {
      to,
      subject: `${notices.kinds[notice]} (${words.platform})`,
      text: `${parts.map((part) => fill(part, words)).join('\n\n')}\n`,
      // Each attempt uses the same id, so that mail servers can detect duplicates.
      messageId: `<notice-${id}-${at.replace(/\D/g, '')}@${host.replace(/:\d+$/, '')}>`,
      headers: canMute
        ? { 'List-Unsubscribe': `<${words.link}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' } // RFC 8058
        : {},
    };
  }
}
