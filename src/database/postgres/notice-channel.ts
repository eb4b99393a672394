import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Client } from 'pg';
import { SessionClient } from './session.js';

const RECONNECT_MS = 500;

interface NoticeChannelOptions {
  readonly applicationName: string;
  readonly channel: string;
  readonly heartbeatMs: number;
  /** Time in ms for which a heartbeat is valid, from its sending. */
  readonly trustMs: number;
}

/** Listens (LISTEN) on a separate connection: a heartbeat's response proves that all earlier notifications have arrived. */
export abstract class NoticeChannel implements OnModuleInit, OnApplicationShutdown {
  /** Called with a reason when the connection is lost or cannot be made, and with undefined after a reconnect. */
  onChange: (cutBecause: string | undefined) => void = () => undefined;
  #client: Client | undefined;
  #isCut = false;
  #trustedUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  /** @param url of PostgreSQL, without a pooler; undefined for no channel */
  protected constructor(
    private readonly url: string | undefined,
    private readonly options: NoticeChannelOptions,
  ) {}

  onModuleInit(): void {
    if (this.url !== undefined) void this.#connect(this.url);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#ended = true;
    this.#trustedUntil = 0;
    clearTimeout(this.#timer);
    await this.#client?.end().catch(() => undefined);
  }

  /** Whether every notification older than `trustMs` has been received. */
  get trusted(): boolean {
    return performance.now() < this.#trustedUntil;
  }

  /** Called when a new connection listens, because earlier notifications may be lost. */
  protected abstract begin(): void;

  protected async beat(client: Client): Promise<void> {
    await client.query('SELECT');
  }

  protected abstract hear(payload: string | undefined): void;

  async #connect(url: string): Promise<void> {
    const { applicationName, channel, trustMs } = this.options;
    const client = new SessionClient({
      connectionString: url,
      application_name: applicationName,
      connectionTimeoutMillis: 2_000,
      query_timeout: trustMs,
      keepAlive: true,
    });
    this.#client = client;
    client.on('error', () => undefined); // the next heartbeat fails and causes a reconnect
    client.on('notification', ({ payload }) => {
      if (client === this.#client) this.hear(payload);
    });
    try {
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      this.begin();
      await this.#beatOn(client);
    } catch (error) {
      client.end().catch(() => undefined);
      if (this.#ended) return;
      this.#trustedUntil = 0;
      if (!this.#isCut) this.onChange((error as Error).message);
      this.#isCut = true;
      this.#timer = setTimeout(() => void this.#connect(url), RECONNECT_MS);
    }
  }

  async #beatOn(client: Client): Promise<void> {
    for (;;) {
      const asked = performance.now();
      await this.beat(client);
      if (this.#ended) return;
      this.#trustedUntil = asked + this.options.trustMs;
      if (this.#isCut) this.onChange(undefined);
      this.#isCut = false;
      await new Promise<void>((resolve) => (this.#timer = setTimeout(resolve, this.options.heartbeatMs)));
      if (this.#ended) return;
    }
  }
}
