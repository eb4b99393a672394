import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Config } from '../config/config.js';
import { Database } from '../database/database.js';
import { Semaphore } from '../database/semaphore.js';
import { etagOf } from '../http/output/etag.js';
import { calendarVersion, readCalendar } from './calendar-events.js';
import { calendarFile, type CalendarSource } from './calendar-file.js';

interface CalendarFile {
  readonly bytes: Buffer;
  readonly etag: string;
  /** Of the events in it. */
  readonly version: string;
}

/** Memory for the files of all members: some twenty of a thousand events with long texts, or thousands of ordinary ones. */
const KEPT_BYTES = 64 * 1_048_576;
/** What an entry takes beside its file. */
const ENTRY_BYTES = 1_000;
/** Members whose files wait to be read; what they wait is bounded, too. */
const MOST_WAITING = 200;

/** How long a reader waits for a file at most, in ms: calendar programs ask once an hour, and nobody is looking. */
export const PATIENCE_MS = 5_000;

/**
 * Files of members' calendars, each kept for as long as its events are unchanged. One is looked up or made at a time, each member's once for
 * all who ask for it meanwhile: however many read however often, they take one connection, and no more than a member's share of the time.
 */
@Injectable()
export class CalendarFiles {
  readonly #source: CalendarSource;
  readonly #kept = new LRUCache<number, CalendarFile>({
    maxSize: KEPT_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length + ENTRY_BYTES,
  });
  readonly #turns = new Semaphore(1, MOST_WAITING, PATIENCE_MS);
  /** Files by member whose turn has not come: whoever asks for one of them gets what will then be true. */
  readonly #waiting = new Map<number, Promise<CalendarFile>>();

  constructor(
    config: Config,
    private readonly database: Database,
  ) {
    this.#source = { name: config.platformName ?? 'Events', host: new URL(config.publicUrl).hostname };
  }

  /** Gives a member's file as it is now. @throws Unavailable if too many others wait, or for too long */
  of(userId: number): Promise<CalendarFile> {
    const waiting = this.#waiting.get(userId);
    if (waiting) return waiting;
    const begun = () => this.#waiting.delete(userId);
    const file = Promise.resolve()
      .then(() =>
        this.#turns.take(() => {
          begun();
          return this.#read(userId);
        }),
      )
      .catch((error: unknown) => {
        if (this.#waiting.get(userId) === file) begun();
        throw error;
      });
    this.#waiting.set(userId, file);
    return file;
  }

  async #read(userId: number): Promise<CalendarFile> {
    const version = await calendarVersion(this.database, userId);
    const kept = this.#kept.get(userId);
    if (kept?.version === version) return kept;
    // A change in between makes a file that is newer than its version, and is made again the next time.
    const bytes = await calendarFile(await readCalendar(this.database, userId), this.#source);
    const file = { bytes, etag: etagOf(bytes), version };
    this.#kept.set(userId, file);
    return file;
  }
}
