import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { createApp } from '../../src/app.js';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { SigningKeysService } from '../../src/clients/signing-keys.service.js';
import { Config } from '../../src/config/config.js';
import { Secrets } from '../../src/crypto/secrets.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { endApp } from './api.js';
import { serve, type LocalServer } from './http-server.js';
import { OauthTest, REDIRECT_URI } from './oauth.js';

const DAYS = 28;

/** A server with a constant URL whose instances change, and a member who grants an app access without an end. */
export class Year {
  #key = Buffer.from(process.env.TEST_SECRET_KEY!, 'base64');
  #instance: NestExpressApplication | undefined;
  #losesResponse = false;

  private constructor(
    readonly oauth: OauthTest,
    private readonly entry: LocalServer,
    readonly member: { readonly id: number; readonly username: string },
    readonly clientId: string,
  ) {}

  static async start(redirectUri = REDIRECT_URI, allowed_origins: string[] = []): Promise<Year> {
    const entry = await serve((from, to) => void year.#pass(from, to));
    const oauth = await OauthTest.start({ publicUrl: entry.url, assistants: true });
    const clientId = await oauth.client({
      longest_access: 'unlimited',
      redirect_uris: [redirectUri],
      allowed_origins,
    });
    const year = new Year(oauth, entry, await oauth.member(), clientId);
    return year;
  }

  async close(): Promise<void> {
    await this.entry.close();
    if (this.#instance) await endApp(this.#instance);
    await this.oauth.close();
  }

  /** @returns the URL to which the app is redirected */
  signIn(url: URL | string): Promise<URL> {
    const { username } = this.member;
    return this.oauth.browser().authorize(url, { username, duration: 'unlimited' });
  }

  /** Advances time by a year in which the app is used every four weeks. @param use calls the API, once more after a failure @returns the member’s id */
  async pass(use: () => Promise<unknown>): Promise<void> {
    for (let days = 0; days < 365; days += DAYS) {
      await this.oauth.passTime(DAYS * 86_400);
      await this.#app.get(Sweeper).sweep();
      this.#app.get(RevocationChannel).announce('all');
      const step = (days / DAYS) % 3;
      if (step === 0) await this.#restart();
      if (step === 1) await new SigningKeysService(this.oauth.dataSource, this.#app.get(Config)).rotate();
      this.#losesResponse = step === 2;
      expect([days, await use(), this.#losesResponse]).toEqual([days, this.member.id, false]);
    }
    const [row] = await this.oauth.query<{ uses: number; sign_ins: number }>(
      `SELECT count(*) FILTER (WHERE type = 'token.refreshed')::integer AS uses,
  count(*) FILTER (WHERE type = 'token.issued')::integer AS sign_ins FROM auth_events WHERE client_id = $1`,
      [this.clientId],
    );
    expect([row!.uses >= 365 / DAYS, row!.sign_ins]).toEqual([true, 1]);
  }

  get #app(): NestExpressApplication {
    return this.#instance ?? this.oauth.api.app;
  }

  /** Starts an instance with the next SECRET_KEY. */
  async #restart(): Promise<void> {
    const next = Buffer.from(this.#key.map((byte) => byte ^ 0x55));
    const before = this.#instance;
    const secrets = new Secrets(next, this.#key);
    this.#instance = await createApp({ ...this.oauth.api.config, secrets });
    await this.#instance.listen(0, '127.0.0.1');
    if (before) await endApp(before);
    this.#key = next;
  }

  async #pass(from: IncomingMessage, to: ServerResponse): Promise<void> {
    const { port } = this.#app.getHttpServer().address() as AddressInfo;
    const { method, url: path, headers } = from;
    const body = await buffer(from);
    const answer = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      void buffer(response).then((bytes) => {
        const isLost = this.#losesResponse && body.includes('grant_type=refresh_token');
        if (isLost) {
          this.#losesResponse = false;
          return to.destroy();
        }
        return to.writeHead(response.statusCode!, response.rawHeaders).end(bytes);
      });
    });
    answer.on('error', () => to.destroy());
    answer.end(body);
  }
}
