import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Database } from '../../src/database/database.js';
import { OauthDatabase } from '../../src/authorization-server/requests/oauth-database.js';
import { OauthTest, type Browser } from '../support/oauth.js';

let oauth: OauthTest;
let sent: string[] = [];

/** Excludes clients cached within the last second, and upgrades of old hashes, which run outside of requests. */
const NOT_COUNTED = /FROM oauth_clients WHERE id = \$1$|SET password_hash/;
const WRITES = /\b(INSERT INTO|UPDATE \w+|DELETE FROM)\b/;

beforeAll(async () => {
  oauth = await OauthTest.start();
  const database = oauth.api.app.get(Database);
  const requests = oauth.api.app.get(OauthDatabase);
  for (const way of ['read', 'rows', 'prepared'] as const) {
    const run = database[way].bind(database) as (statement: unknown, values: unknown[]) => Promise<never[]>;
    database[way] = (statement: string | { text: string }, values: unknown[]) => {
      const text = typeof statement === 'string' ? statement : statement.text;
      if (requests.current && !NOT_COUNTED.test(text)) sent.push(text); // except statements of periodic work
      return run(statement, values);
    };
  }
});
afterAll(() => oauth.close());

function counted(): { reads: number; writes: number } {
  const writes = sent.filter((text) => WRITES.test(text)).length;
  const reads = sent.length - writes;
  sent = [];
  return { reads, writes };
}

/** Counts the statements of each step that the browser makes: route → statements. */
function stepsOf(browser: Browser) {
  const steps: Record<string, ReturnType<typeof counted>>[] = [];
  const send = browser.send.bind(browser);
  browser.send = async (url, init) => {
    sent = [];
    const response = await send(url, init);
    const path = new URL(url, oauth.issuer).pathname.replace(/[\w-]{43}/, ':uid');
    steps.push({ [`${init?.method ?? 'GET'} ${path}`]: counted() });
    return response;
  };
  return steps;
}

/** Of the four writes, two take a slot among the attempts of address and account; one releases both slots and records the sign-in. */
const TO_SIGN_IN = [
  { 'GET /oauth/authorize': { reads: 0, writes: 1 } },
  { 'GET /interaction/:uid': { reads: 1, writes: 0 } },
  { 'POST /interaction/:uid/sign-in': { reads: 2, writes: 4 } },
];

it('a first sign-in with consent runs 16 statements', async () => {
  const { username } = await oauth.member();
  const browser = oauth.browser();
  const steps = stepsOf(browser);
  await oauth.code(await oauth.client(), username, {}, browser);
  expect(steps).toEqual([
    ...TO_SIGN_IN,
    { 'GET /oauth/authorize/:uid': { reads: 1, writes: 1 } },
    { 'GET /interaction/:uid': { reads: 1, writes: 0 } },
    { 'POST /interaction/:uid/consent': { reads: 1, writes: 1 } },
    { 'GET /oauth/authorize/:uid': { reads: 2, writes: 1 } }, // includes the session, which the browser has by now
  ]);
});

it('a sign-in to an app that already has consent runs 10 statements', async () => {
  const { username, clientId } = await oauth.memberAndClient();
  await oauth.code(clientId, username);
  const browser = oauth.browser();
  const steps = stepsOf(browser);
  await oauth.code(clientId, username, {}, browser);
  expect(steps).toEqual([...TO_SIGN_IN, { 'GET /oauth/authorize/:uid': { reads: 1, writes: 1 } }]);
});

it('authorizing a signed-in member, redeeming a code, and refreshing tokens each run one read and one write', async () => {
  const { username, clientId, browser } = await oauth.memberAndClient();
  await oauth.code(clientId, username, {}, browser);
  sent = [];
  const code = await oauth.code(clientId, username, {}, browser);
  expect(counted()).toEqual({ reads: 1, writes: 1 });
  const { body } = await oauth.token(code);
  expect(counted()).toEqual({ reads: 1, writes: 1 });
  await oauth.refresh(clientId, body.refresh_token);
  expect(counted()).toEqual({ reads: 1, writes: 1 });
});
