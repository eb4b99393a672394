import type { NestExpressApplication } from '@nestjs/platform-express';
import supertest, { type Response } from 'supertest';
import type { DataSource } from 'typeorm';
import { createApp } from '../../src/app.js';
import { ALL_PLATFORM_SCOPES, ALL_SCOPES } from '../../src/auth/scopes.js';
import type { Config } from '../../src/config/config.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { Database } from '../../src/database/database.js';
import { ApiKeysService, type NewKey } from '../../src/auth/api-keys/api-keys.service.js';
import { createTestDatabase, testConfig } from './database.js';
import { responseCheck, type ApiDocument, type ResponseCheck } from './openapi.js';
import { Platform } from './platform.js';

type Headers = Record<string, string>;

/**
 * Ends an application that is no longer needed. `closeApp` first waits for callers about to connect: a sixth of a second, needed
 * only in tests about that wait.
 */
export async function endApp(app: NestExpressApplication): Promise<void> {
  const server = app.getHttpServer();
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
  await app.close();
  await app.get(Database).end();
}

/** A running application over its own database, and its test helpers. */
export class TestApi {
  readonly platform: Platform;
  readonly #validators = new Map<string, Promise<ResponseCheck>>();

  private constructor(
    readonly app: NestExpressApplication,
    readonly config: Config,
    /** Separate connections, for actions of the platform or an admin. */
    readonly dataSource: DataSource,
    readonly environment: Record<string, string>,
    private readonly end: () => Promise<void>,
  ) {
    this.platform = new Platform(dataSource);
  }

  /** @param beside application that owns the database, and must close after the new one; a separate database doubles the startup time */
  static async start(
    overrides: Partial<Config> = {},
    beside?: Pick<TestApi, 'environment'>,
  ): Promise<TestApi> {
    const database = beside
      ? { environment: beside.environment, drop: () => Promise.resolve() }
      : await createTestDatabase();
    const config = testConfig(database.environment, overrides);
    const dataSource = await createDataSource(config, 'maintenance').initialize();
    const app = await createApp(config);
    await app.listen(config.port, '127.0.0.1');
    return new TestApi(app, config, dataSource, database.environment, async () => {
      await endApp(app);
      await dataSource.destroy();
      await database.drop();
    });
  }

  close(): Promise<void> {
    return this.end();
  }

  /** Ends it at the end of the block that declares it by `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get url(): string {
    const { port } = this.app.getHttpServer().address() as { port: number };
    return `http://127.0.0.1:${port}`;
  }

  /** Runs SQL on the separate connections. */
  query<Row = any>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.dataSource.query<Row[]>(sql, values);
  }

  /** Creates a member's key with these scopes, by default all. */
  async key(
    userId: number | null,
    scopes: readonly string[] = ALL_SCOPES,
    more: Partial<NewKey> = {},
  ): Promise<string> {
    const { key } = await new ApiKeysService(this.dataSource, this.config).create({
      userId,
      name: 'test',
      scopes: [...scopes],
      environment: 'live',
      cidrs: [],
      expiresInSeconds: 10 * 86_400, // later than the notice that a used key ends soon
      actor: 'system', // creates no notice for the member
      ...more,
    });
    return key;
  }

  /** A new member, and their key with these scopes. */
  async member(fields: Record<string, unknown> = {}, scopes?: readonly string[]) {
    const id = await this.platform.user(fields);
    return { id, key: await this.key(id, scopes) };
  }

  /** Creates a platform key. */
  platformKey(scopes: readonly string[] = ALL_PLATFORM_SCOPES): Promise<string> {
    return this.key(null, scopes, { actor: 'admin' });
  }

  /** POST of a feed with a platform key: strings are sent unchanged, other lines as JSON. */
  feed(key: string, lines: readonly unknown[], headers: Headers = {}): Promise<Response> {
    const body = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
    return this.send(
      'POST',
      '/api/platform/records',
      { 'X-API-Key': key, 'Content-Type': 'application/x-ndjson', ...headers },
      body,
    );
  }

  /** Sends a request unchanged. Every response is compared with the OpenAPI document. */
  async send(method: string, path: string, headers: Headers = {}, body?: string | Buffer): Promise<Response> {
    const verb = method.toLowerCase() as 'get';
    let request = supertest(this.app.getHttpServer())[verb](path).set(headers);
    if (body !== undefined) request = request.send(body as string);
    const response = await request;
    const prefix = path.startsWith('/api/platform') ? '/api/platform' : '/api/public';
    if (!this.#validators.has(prefix)) this.#validators.set(prefix, this.#makeValidator(prefix));
    const validate = await this.#validators.get(prefix)!;
    validate(path, method, response);
    return response;
  }

  /** GET with a key: `/events?limit=5` is `/api/public/events?limit=5`. */
  get(path: string, key: string, headers: Headers = {}): Promise<Response> {
    return this.send('GET', `/api/public${path}`, { 'X-API-Key': key, ...headers });
  }

  /** PUT of a JSON value with a key. */
  put(path: string, key: string, body: unknown, headers: Headers = {}): Promise<Response> {
    const json = { 'X-API-Key': key, 'Content-Type': 'application/json', ...headers };
    return this.send(
      'PUT',
      `/api/public${path}`,
      json,
      typeof body === 'string' ? body : JSON.stringify(body),
    );
  }

  async #makeValidator(prefix: string): Promise<ResponseCheck> {
    const { body } = await supertest(this.app.getHttpServer()).get(`${prefix}/openapi.json`);
    return responseCheck(prefix, body as ApiDocument);
  }
}
