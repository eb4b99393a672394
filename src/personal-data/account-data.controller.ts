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
  /** Files that this process sends at the same time. */
  atOnce: 4,
  /** How long all of a file may take, in ms. */
  longestMs: 300_000,
  /** How long the reader may take for {@link CHUNK_BYTES}, in ms. */
  stalledMs: 10_000,
};

/** Bytes that are handed over at a time. */
const CHUNK_BYTES = 16_384;

/** Why a file is not sent now: the member is downloading one already, or too many others are. */
type DownloadRefusal = 'running' | 'full';

/**
 * Sends files that are read while they are sent. However slowly somebody reads, the rest of the file is not read before they have taken
 * what was, and whoever takes nothing is disconnected: a part of a file is never taken for the whole.
 */
export class Downloads {
  readonly #members = new Set<number>();

  constructor(private readonly bounds = BOUNDS) {}

  /** The number of files that are being sent. */
  get underWay(): number {
    return this.#members.size;
  }

  /** Runs `send`, with which a member downloads a file, unless it cannot be sent now. */
  async run(userId: number, send: () => Promise<void>): Promise<DownloadRefusal | undefined> {
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

  /** Sends the pieces of a file one after the other. @throws if the reader is gone, or was disconnected */
  async send(response: ServerResponse, pieces: AsyncIterable<string | Buffer>): Promise<void> {
    const late = setTimeout(() => response.destroy(), this.bounds.longestMs);
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

/** Resolves when the system has taken the bytes. */
function handOver(response: ServerResponse, bytes: Buffer, stalledMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const stalled = setTimeout(() => response.destroy(), stalledMs);
    response.write(bytes, (error) => {
      clearTimeout(stalled);
      if (error ?? response.destroyed) reject(error ?? new Error('the reader is gone'));
      else resolve();
    });
  });
}

const STATUSES = { running: 429, full: 503 } as const;
/** After a refusal. */
const RETRY_AFTER_SECONDS = 10;

/** Ending the member's sign-ins, or disabling the member, deletes the session. */
const STILL_SIGNED_IN = `SELECT FROM oauth_sessions WHERE uid_key = ANY ($1::bytea[]) AND user_id = $2 AND ${unexpired()}`;

/** Everything that is held about a member, as a file. */
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

  /** A form with a token, not a link, so that no other site can make the server do this work. */
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
    await this.usage.flush(); // so that what this process has counted is in the file
    leaveSlot(context); // from here on, it mostly waits for its reader
    const pieces = this.personalData.of(user.id, async () => {
      const values = [sessionKeys, user.id];
      const found = await this.database.prepared(STILL_SIGNED_IN, values);
      if (found.length === 0) throw new Error('the member is no longer signed in');
    });
    const first = await pieces.next(); // a failure before the first byte is an error page
    if (response.headersSent) return; // the deadline was first
    response
      .status(200)
      .set('Content-Type', 'application/json; charset=utf-8')
      .set('Content-Disposition', `attachment; filename="member-${user.id}.json"`);
    response.write(first.value);
    try {
      await this.downloads.send(response, pieces);
    } catch (error) {
      // The connection is cut, so that nobody mistakes a part of the file for the whole.
      this.logger.warn({ err: error, request_id: context.id }, 'a member’s data were not sent whole');
    }
  }
}
