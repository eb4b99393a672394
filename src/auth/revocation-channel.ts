import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { Client } from 'pg';
import { Logger } from '../http/logger.js';
import { Config } from '../config/config.js';

/** How often a heartbeat is sent over the channel. */
const HEARTBEAT_MS = 250;
/** How long a heartbeat counts, from when it was sent: less than the second within which a revocation must take effect. */
const TRUST_MS = 900;
const RECONNECT_MS = 500;

/** `<kind>:<id>`: an id may hold a colon itself. Anything else ends all. */
const NOTICE = /^(key|user|grant|client):(.+)$/s;

export type Revocation = { readonly kind: 'key' | 'user' | 'grant' | 'client'; readonly id: string } | 'all';

/**
 * Hears from PostgreSQL (LISTEN, on a connection of its own) which credentials end. Notices and answers come over one
 * connection in order, so an answered heartbeat proves that every earlier notice was heard.
 */
@Injectable()
export class RevocationChannel implements OnModuleInit, OnApplicationShutdown {
  readonly #listeners: ((revocation: Revocation) => void)[] = [];
  #client: Client | undefined;
  #trustedUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    // The embedded database delivers no notices: without the channel nothing is cached, and nothing is lost.
    if (this.config.databaseDirectUrl !== undefined) void this.#connect();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#client?.end().catch(() => undefined);
  }

  /** Whether every revocation older than a second has been heard. */
  get trusted(): boolean {
    return performance.now() < this.#trustedUntil;
  }

  onRevocation(listener: (revocation: Revocation) => void): void {
    this.#listeners.push(listener);
  }

  async #connect(): Promise<void> {
    const client = new Client({
      connectionString: this.config.databaseDirectUrl,
      application_name: 'public-user-api revocations',
      connectionTimeoutMillis: 2_000,
      query_timeout: TRUST_MS,
      keepAlive: true,
    });
    this.#client = client;
    client.on('error', () => undefined); // the heartbeat fails too, and reconnects
    client.on('notification', ({ payload }) => this.#heard(payload));
    try {
      await client.connect();
      await client.query('LISTEN revocations');
      this.#tell('all'); // whatever ended while nobody listened is unknown
      await this.#beat(client);
    } catch (error) {
      this.#reconnect(client, error);
    }
  }

  async #beat(client: Client): Promise<void> {
    for (;;) {
      const asked = performance.now();
      await client.query('SELECT');
      this.#trustedUntil = asked + TRUST_MS;
      await new Promise<void>((resolve) => (this.#timer = setTimeout(resolve, HEARTBEAT_MS)));
      if (this.#ended) return;
    }
  }

  #reconnect(client: Client, error: unknown): void {
    client.end().catch(() => undefined);
    if (this.#ended) return;
    this.logger.warn(
      { reason: (error as Error).message },
      'the revocation channel is cut: credentials are looked up each time',
    );
    this.#timer = setTimeout(() => void this.#connect(), RECONNECT_MS);
  }

  #heard(payload: string | undefined): void {
    const [, kind, id] = NOTICE.exec(payload ?? '') ?? [];
    this.#tell(id === undefined ? 'all' : { kind: kind as 'key', id });
  }

  #tell(revocation: Revocation): void {
    for (const listener of this.#listeners) listener(revocation);
  }
}
