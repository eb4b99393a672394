import { Session } from 'node:inspector/promises';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { run } from '../../src/cli/program.js';
import { PeriodicWork } from '../../src/runtime/periodic-work.js';
import { WebhookWorker } from '../../src/webhooks/webhook-worker.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { postgres } from '../support/database.js';
import { OauthTest, PASSWORD, type FormPage } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { eventually } from '../support/timing.js';

/** Rounds of each flow. A file counts only if every round enters the file: some rounds also renew connections. */
const ROUNDS = 12;

/** By V8's coverage, a flow enters a file if the flow calls any function of the file except constructors. */
postgres.describe('the documented flows', () => {
  let oauth: OauthTest;
  const session = new Session();
  beforeAll(async () => {
    oauth = await OauthTest.start();
    await oauth.api.app.get(PeriodicWork).beforeApplicationShutdown(); // otherwise periodic work would run in each round of a slow flow
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  });
  afterEach(() => void jest.restoreAllMocks());
  afterAll(async () => {
    session.disconnect();
    await oauth.close();
  });

  /** The files of src that were entered since the last call. */
  async function entered(): Promise<Set<string>> {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const files = result.filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => !/^[A-Z<]/.test(functionName) && ranges[0]!.count > 0),
    );
    return new Set(files.flatMap(({ url }) => /\/dist\/(src\/.*)\.js$/.exec(url)?.[1] ?? []));
  }

  async function filesOf(flow: () => Promise<unknown>): Promise<Set<string>> {
    await flow(); // one-time work ends before the measurement
    await entered();
    await flow();
    let files = await entered();
    for (let round = 1; round < ROUNDS; round++) {
      await flow();
      files = files.intersection(await entered());
    }
    return files;
  }

  function expectAtMost(most: number, files: Set<string>): void {
    expect(files.size > most ? `${files.size}: ${[...files].toSorted().join(' ')}` : '').toBe('');
  }

  const call = async (path: string, key: string, body?: object) => {
    const response = await fetch(`${oauth.issuer}/api/public${path}`, {
      method: body ? 'PUT' : 'GET',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect(response.status).toBe(200);
    await response.text();
  };

  it('run at most 39 files for GET /api/public/events', async () => {
    const key = await oauth.api.key(await oauth.api.platform.user());
    expectAtMost(39, await filesOf(() => call('/events', key)));
  });

  it('run at most 42 files for a token refresh', async () => {
    const { username } = await oauth.member();
    const clientId = await oauth.client();
    let { refresh_token } = await oauth.tokens(clientId, username);
    const refresh = async () => {
      const { status, body } = await oauth.refresh(clientId, refresh_token);
      expect(status).toBe(200);
      ({ refresh_token } = body as { refresh_token: string });
    };
    expectAtMost(42, await filesOf(refresh));
  });

  it('run at most 44 files for the POST of the sign-in form, in addition to the files for GET /api/public/events', async () => {
    const { username } = await oauth.member();
    const clientId = await oauth.client();
    const forms = Array.from({ length: ROUNDS + 1 }, async () => {
      const browser = oauth.browser();
      return { browser, page: (await browser.open(oauth.request(clientId).url)) as FormPage };
    });
    const opened = await Promise.all(forms);
    const signIn = () => {
      const { browser, page } = opened.pop()!;
      return browser.submit(page, { username, password: PASSWORD }, /\/sign-in$/);
    };
    const key = await oauth.api.key(await oauth.api.platform.user());
    const ofGet = await filesOf(() => call('/events', key));
    expectAtMost(44, (await filesOf(signIn)).difference(ofGet));
  });

  it('run at most 19 files for PUT /api/public/profile and its webhook, in addition to the files for GET', async () => {
    const receiver = await Receiver.start();
    const key = await oauth.api.key(await oauth.api.platform.user());
    const of = { types: ['profile.updated'], keyId: key.split('_')[2]!, actor: 'admin' } as const;
    await new WebhooksService(oauth.dataSource, oauth.api.config).create({ url: receiver.url, ...of });
    const { signal } = new AbortController();
    const worker = oauth.api.app.get(WebhookWorker);
    const put = async () => {
      const before = receiver.received.length;
      await call('/profile', key, { bio: `the ${before}th` });
      const pending = `SELECT FROM webhook_deliveries WHERE status = 'pending'`;
      await eventually(async () => {
        await worker.work(signal);
        const isSent = receiver.received.length > before;
        return isSent && (await oauth.dataSource.query(pending)).length === 0 ? true : undefined;
      });
    };
    const ofGet = await filesOf(() => call('/profile', key));
    expectAtMost(19, (await filesOf(put)).difference(ofGet));
    await receiver.close();
  });

  it('run at most 9 files for pua keys create, in addition to the files for pua users show', async () => {
    const id = String(await oauth.api.platform.user());
    jest.replaceProperty(process, 'env', { ...process.env, ...oauth.api.environment });
    for (const stream of [process.stdout, process.stderr]) jest.spyOn(stream, 'write').mockReturnValue(true);
    const ofAny = await filesOf(() => run(['users', 'show', id]));
    const create = () => run(['keys', 'create', '--user', id, '--name', 'x', '--scopes', '']);
    expectAtMost(9, (await filesOf(create)).difference(ofAny));
  });
});
