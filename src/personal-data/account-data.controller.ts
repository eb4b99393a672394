import type { ServerResponse } from 'node:http';
import { Controller, Get, Post } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Database } from '../database/database.js';
import { unexpired } from '../database/sql.js';
import { recordAlone } from '../audit/audit.js';
import { Usage } from '../auth/usage/usage.js';
import { Logger } from '../runtime/logger.js';
import { leaveSlot } from '../http/pipeline/request-context.js';
import { FormSender, Visitor, type Member, type Sender } from '../member-pages/account/account-pages.js';
import { ServesPages } from '../member-pages/requests/page-requests.js';
import { PersonalData } from './personal-data.js';

const BOUNDS = {
  atOnce: 4,
  maxDurationMs: 300_000,
  /** Maximum time in ms until the operating system accepts {@link CHUNK_BYTES}. */
  stalledMs: 10_000,
};

const CHUNK_BYTES = 16_384;

/** Sends data exports no faster than clients read, and disconnects clients that stop reading. */
export class Downloads {
  readonly #members = new Set<number>();

  constructor(private readonly bounds = BOUNDS) {}

  get inProgress(): number {
    return this.#members.size;
  }

  /** Runs `send`, unless the member (`running`) or too many other members (`full`) are downloading. @returns why it did not run, if so */
  async run(userId: number, send: () => Promise<void>): Promise<'running' | 'full' | undefined> {
    if (this.#members.has(userId)) return 'running';
    if (this.#members.size >= this.bounds.atOnce) return 'full';
    this.#members.add(userId);
    try {
      await send();
    } finally {
      this.#members.delete(userId);
    }
    return undefined;
  }

  /** Sends the pieces in order. @throws Error if it could not send all of them */
  async send(response: ServerResponse, pieces: AsyncIterable<string | Buffer>): Promise<void> {
    const late = setTimeout(() => response.destroy(), this.bounds.maxDurationMs);
    try {
      for await (const piece of pieces) {
        const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
        for (let start = 0; start < bytes.length; start += CHUNK_BYTES)
          await handOver(response, bytes.subarray(start, start + CHUNK_BYTES), this.bounds.stalledMs);
      }
      response.end();
    } catch (error) {
      response.destroy();
      throw error;
    } finally {
      clearTimeout(late);
    }
  }
}

/** Resolves when the operating system has accepted the bytes. */
function handOver(response: ServerResponse, bytes: Buffer, stalledMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const stalled = setTimeout(() => response.destroy(), stalledMs);
    response.write(bytes, (error) => {
      clearTimeout(stalled);
      if (error ?? response.destroyed) reject(error ?? new Error('the client has disconnected'));
      else resolve();
    });
  });
}

const STATUSES = { running: 429, full: 503 } as const;
const RETRY_AFTER_SECONDS = 10;

/** SQL: finds an unexpired session of the member. */
const STILL_SIGNED_IN = `SELECT FROM oauth_sessions WHERE uid_key = ANY ($1::bytea[]) AND user_id = $2 AND ${unexpired()}`;

@Controller('account/data')
@ServesPages()
export class AccountDataController {
  constructor(
    private readonly database: Database,
    private readonly personalData: PersonalData,
    private readonly downloads: Downloads,
    private readonly dataSource: DataSource,
    private readonly usage: Usage,
    private readonly logger: Logger,
  ) {}

  @Get()
  async show(@Visitor('data') visitor: Member): Promise<void> {
    visitor.send({ name: 'data', confirm: await visitor.confirmationOn('data') });
  }

  /** Requires a form with a CSRF token, so that other sites cannot trigger this work. */
  @Post('download')
  async download(@FormSender('data') member: Sender): Promise<void> {
    const fault = await this.downloads.run(member.user.id, () => this.#send(member));
    if (fault === undefined) return;
    member.response.set('Retry-After', String(RETRY_AFTER_SECONDS));
    member.send({ name: 'data', fault }, STATUSES[fault]);
  }

  async #send({ response, user, sessionKeys, by }: Member): Promise<void> {
    const { context } = response.req;
    await recordAlone((text, values) => this.dataSource.query(text, values), {
      ...by,
      type: 'user.exported',
      userId: user.id,
    });
    await this.usage.flush(); // so that the file includes this process's latest counts
    leaveSlot(context); // after this, the request mostly waits for the client
    const pieces = this.personalData.of(user.id, async () => {
      const values = [sessionKeys, user.id];
      const found = await this.database.prepared(STILL_SIGNED_IN, values);
      if (found.length === 0) throw new Error('the member is no longer signed in');
    });
    const first = await pieces.next(); // a failure before the first byte causes an error page
    if (response.headersSent) return; // the deadline passed first
    response
      .status(200)
      .set('Content-Type', 'application/json; charset=utf-8')
      .set('Content-Disposition', `attachment; filename="member-${user.id}.json"`);
    response.write(first.value);
    try {
      await this.downloads.send(response, pieces);
    } catch (error) {
      // The disconnect tells the client that the file is incomplete.
      this.logger.warn({ err: error, request_id: context.id }, 'a data export was not sent completely');
    }
  }
}
