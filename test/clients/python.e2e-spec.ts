import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { postgres } from '../support/database.js';
import { VERSION } from '../../src/config/version.js';
import { makeWebhookSecret } from '../../src/crypto/webhook-signatures.js';
import { organizer, webhookHeaders } from '../support/client-packages.js';
import { reply, serve, serveReplies } from '../support/http-server.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';
import { Year } from '../support/year.js';

const PACKAGE = resolve('clients/python');
const WHEEL = `public_user_api_client-${VERSION}-py3-none-any.whl`;
const run = promisify(execFile);

postgres.describe('the Python client', () => {
  let oauth: OauthTest;
  let folder: string;
  let python: string;

  /** Runs a program with the package like a partner: installed from the server's own wheel, in an otherwise empty environment. */
  async function output(program: string, env: Record<string, string> = {}): Promise<string> {
    const file = join(folder, 'program.py');
    writeFileSync(file, program);
    const { stdout } = await run(python, [file], { env: { ...process.env, API_URL: oauth.issuer, ...env } });
    return stdout;
  }

  beforeAll(async () => {
    oauth = await OauthTest.start();
    folder = mkdtempSync(join(tmpdir(), 'pua-python-'));
    await run('python3', ['-m', 'venv', join(folder, 'venv')]);
    python = join(folder, 'venv/bin/python');
    const pip = (...parameters: string[]) =>
      run(python, ['-m', 'pip', 'install', '--quiet', '--retries', '10', ...parameters]);
    await pip('build', 'mypy');
    await pip(`${oauth.issuer}/clients/${WHEEL}`);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await oauth.close();
  });

  it('has the types of the OpenAPI document (python generate_types.py in clients/python)', async () => {
    const program = `
import json, os, sys, urllib.request
sys.path.insert(0, ${JSON.stringify(PACKAGE)})
sys.dont_write_bytecode = True
import generate_types
with urllib.request.urlopen(os.environ["API_URL"] + "/api/public/openapi.json") as response:
    print(generate_types.types_of(json.load(response)), end="")
`;
    expect(await output(program)).toBe(readFileSync(join(PACKAGE, 'src/public_user_api/schema.py'), 'utf8'));
  });

  it('builds the same package as the server offers, except for WHEEL and RECORD, from a copy of its folder', async () => {
    const copy = join(folder, 'copy');
    cpSync(PACKAGE, copy, { recursive: true });
    await run(python, ['-m', 'build', '--outdir', folder, copy]);
    expect(readdirSync(folder)).toContain(`public_user_api_client-${VERSION}.tar.gz`);
    const served = await fetch(`${oauth.issuer}/clients/python.whl`);
    expect(served.url).toBe(`${oauth.issuer}/clients/${WHEEL}`);
    mkdirSync(join(folder, 'served'));
    writeFileSync(join(folder, 'served', WHEEL), Buffer.from(await served.arrayBuffer()));
    const contents = `
import sys, zipfile
one, other = ({name: archive.read(name) for name in archive.namelist()} for archive in map(zipfile.ZipFile, sys.argv[1:]))
print(one.keys() ^ other.keys(), [name for name in one if one[name] != other[name]])
`;
    const { stdout } = await run(python, [
      '-c',
      contents,
      join(folder, WHEEL),
      join(folder, 'served', WHEEL),
    ]);
    // The program that built the package, and the package's digests.
    const info = `public_user_api_client-${VERSION}.dist-info`;
    expect(stdout).toBe(`set() ['${info}/WHEEL', '${info}/RECORD']\n`);
  });

  it('passes mypy, and has types with which mypy finds errors in a program that uses the client', async () => {
    const { stdout } = await run(
      python,
      ['-m', 'mypy', '--cache-dir', join(folder, 'mypy'), 'src', 'generate_types.py'],
      {
        cwd: PACKAGE,
      },
    );
    expect(stdout).toMatch(/^Success/);
    const program = `
from public_user_api import AsyncClient, Client, SignIn, Tokens
def saved(tokens: Tokens) -> None: ...
def use(tokens: Tokens, sign_in: SignIn) -> None:
    api = Client("http://localhost", token=sign_in.token(tokens, saved), retries=1, longest_wait=5, timeout=3)
    reveal_type(next(iter(api.events(time_filter="upcoming")))["organizer"]["username"])
    api.events(time_filter="tomorrow")
    Client("http://localhost", api_kye="typo")
    AsyncClient("http://localhost", token=sign_in.token(tokens, saved))
`;
    writeFileSync(join(folder, 'typed.py'), program);
    const typed = ['-m', 'mypy', '--cache-dir', join(folder, 'mypy'), join(folder, 'typed.py')];
    const failed = (await run(python, typed).catch((error: unknown) => error)) as { stdout: string };
    expect(
      Array.from(
        failed.stdout.matchAll(/:(\d+): (?:error: .*\[([\w-]+)\]|note: Revealed type is "(.*)")$/gm),
        (one) => one.slice(1),
      ),
    ).toEqual([
      ['6', undefined, 'str'],
      ['7', 'arg-type', undefined],
      ['8', 'call-arg', undefined],
      ['9', 'arg-type', undefined],
    ]);
  });

  it('has a working program in its README', async () => {
    const [, program] = /```python\n([^]*?)```/.exec(readFileSync(join(PACKAGE, 'README.md'), 'utf8'))!;
    const { key } = await organizer(oauth, 2);
    expect(await output(program!, { API_KEY: key })).toMatch(
      /^The events of Ada:\n[\d :-]+ Event \d\n[\d :-]+ Event \d\nvalidation_failed bio\n$/,
    );
  });

  it.each([
    ['sync', 'Client', (text: string) => text.replace(/\b(await|async) /g, '')],
    ['async', 'AsyncClient', (text: string) => text],
  ])('calls every operation in %s code', async (_, name, asWritten) => {
    const { id, key } = await organizer(oauth, 5);
    const program = asWritten(`
import asyncio, json, os
from public_user_api import ${name}, ApiError

async def main():
    async with ${name}(os.environ["API_URL"], api_key=os.environ["API_KEY"]) as api:
        titles = []
        async for event in api.events(limit=2, sort="title", status=["scheduled", "draft"], is_online=False):
            titles.append(event["title"])
        profile, etag = await api.profile_with_etag()
        changed = await api.update_profile({"bio": "Hello", "last_name": None}, if_match=etag)
        try:
            await api.update_profile({"bio": "lost"}, if_match=etag)
            code = None
        except ApiError as error:
            code = error.code
        try:
            missing = await api.achievement(1_000_000)
        except ApiError as error:
            missing = error.code
        first = (await api.events().page())["data"][0]
        again = (await api.events().page())["data"][0]
        print(json.dumps({
            "titles": titles,
            "me": (await api.me())["id"],
            "profile": (await api.profile())["bio"],
            "changed": changed["bio"],
            "code": code,
            "event": (await api.event(first["id"]))["id"] == again["id"],
            "connections": (await api.connections(status=["accepted"]).page())["pagination"]["total"],
            "missing": missing,
            "own": (await api.achievements().page())["pagination"]["total"],
            "achievements": (await api.all_achievements(earned=False).page())["pagination"]["sort"],
            "pinned": await api.pinned_achievements(),
            "earned": (await api.achievement_statistics())["earned"],
            "changes": await api.changes(include="data", resources=["events"], cursor=(await api.changes(resources=["events"]))["next"]),
            "type": (await api.credential())["type"],
        }))

asyncio.run(main())
`).replace(name === 'Client' ? 'asyncio.run(main())' : '\0', 'main()');
    expect(JSON.parse(await output(program, { API_KEY: key }))).toEqual({
      titles: ['Event 0', 'Event 1', 'Event 2', 'Event 3', 'Event 4'],
      me: id,
      profile: 'Hello',
      changed: 'Hello',
      code: 'precondition_failed',
      event: true,
      connections: 0,
      missing: 'achievement_not_found',
      own: 0,
      achievements: 'position',
      pinned: [],
      earned: 0,
      changes: { data: expect.any(Array), next: expect.any(String), more: false, resources: ['events'] },
      type: 'api_key',
    });
  });

  it.each(['0.27.0', 'newest'])(
    'with httpx %s applies the timeout and headers of its own or a given httpx client, and follows no redirect',
    async (version) => {
      const versions = join(folder, `httpx-${version}`);
      if (version !== 'newest')
        await run(python, ['-m', 'pip', 'install', '--quiet', '--target', versions, `httpx==${version}`]);
      const seen: (string | string[] | undefined)[][] = [];
      const server = await serve(({ url, headers }, response) => {
        seen.push([headers['user-agent'], headers['accept-encoding'], headers['x-of'], headers['x-api-key']]);
        if (url === '/api/public/profile') response.writeHead(302, { Location: '/elsewhere' }).end();
        else if (url !== '/api/public/me') response.writeHead(200).end('{"id": 7}');
      });
      const env = {
        API_URL: server.url,
        ...(version === 'newest' ? {} : { PYTHONPATH: versions }),
      };
      const program = `
import asyncio, os
import httpx
from public_user_api import ApiError, AsyncClient, Client

url = os.environ["API_URL"]
print(httpx.__version__)
with Client(url, api_key="key", timeout=0.5, retries=0) as api:
    try:
        api.me()
    except httpx.ReadTimeout:
        print("timeout")
own = httpx.Client(timeout=60, headers={"X-Of": "mine"}, follow_redirects=True)
with Client(url, api_key="key", http_client=own, retries=0) as api:
    print(api.credential()["id"])
    try:
        api.profile()
    except ApiError as error:
        print(error.status)
    own.timeout = 0.5
    try:
        api.me()
    except httpx.ReadTimeout:
        print("timeout")
print(own.is_closed)

async def main():
    async with AsyncClient(url, token="token", timeout=0.5, retries=0) as api:
        try:
            await api.me()
        except httpx.ReadTimeout:
            print("timeout")

asyncio.run(main())
`;
      const printed = await output(program, env).finally(server.close);
      const [found, ...rest] = printed.trim().split('\n');
      if (version !== 'newest') expect(found).toBe(version);
      expect(rest).toEqual(['timeout', '7', '302', 'timeout', 'False', 'timeout']);
      const agent = `python-httpx/${found}`;
      const gzip = expect.stringContaining('gzip');
      expect(seen).toEqual([
        [agent, gzip, undefined, 'key'],
        ...Array.from({ length: 3 }, () => [agent, gzip, 'mine', 'key']),
        [agent, gzip, undefined, undefined],
      ]);
    },
  );

  it('retries a read after 502, 503 and 504, but not a change, and reports an HTML response with its URL', async () => {
    const server = await serveReplies();
    const now = { 'Retry-After': '0' };
    const json = { 'Content-Type': 'application/json' };
    server.replies = [
      reply(503, now),
      reply(200, json, '{"id": 7}'),
      reply(502, now),
      reply(504, now),
      reply(200, json, '{"id": 8}'),
      reply(502, { 'Retry-After': '60', 'Content-Type': 'text/html; charset=utf-8' }, '<h1>Bad gateway</h1>'),
      reply(200, { 'Content-Type': 'text/html' }, '<h1>Welcome</h1>'),
      reply(502, now, 'a change is not sent again'),
      reply(401, {}, 'nor is a refused token'),
      reply(
        429,
        { 'Retry-After': '60' },
        '{"code": "rate_limited", "title": "Too many requests", "detail": "Wait."}',
      ),
    ];
    const program = `
import os
from public_user_api import ApiError, Client

with Client(os.environ["API_URL"], token="token") as api:
    print(api.me()["id"])
    print(api.me()["id"])
    for call in (api.me, api.me, lambda: api.update_profile({"bio": "once"}), api.me, api.me):
        try:
            call()
        except ApiError as error:
            print(error.status, error.code, error.retry_after, error)
`;
    const strange = (status: number, type: string, path = 'me') =>
      `HTTP ${status} with ${type} instead of JSON, from ${server.url}/api/public/${path}: a proxy responded, or base_url is not the API's URL.`;
    const printed = await output(program, { API_URL: server.url }).finally(server.close);
    expect(printed.trim().split('\n')).toEqual([
      '7',
      '8',
      `502 unknown 60 ${strange(502, 'text/html')}`,
      `200 unknown None ${strange(200, 'text/html')}`,
      `502 unknown 0 ${strange(502, 'nothing', 'profile')}`,
      `401 unknown None ${strange(401, 'nothing')}`,
      '429 rate_limited 60 Too many requests: Wait.',
    ]);
    expect(server.replies).toEqual([]);
  });

  it.each([
    [
      'sync',
      (text: string) => text.replace(/\b(await|async) /g, '').replaceAll(/Async(Client|SignIn)/g, '$1'),
    ],
    ['async', (text: string) => text],
  ])('signs a member in, renews tokens, and ends access in %s code', async (kind, asWritten) => {
    const { id, username } = await oauth.member();
    const clientId = await oauth.client();
    const head = `
import asyncio, json, os, time
from public_user_api import ApiError, AsyncClient, AsyncSignIn, SignInError

issuer = os.environ["API_URL"]
sign_in = AsyncSignIn(issuer, client_id="${clientId}", redirect_uri="${REDIRECT_URI}", scope="profile:read events:read")
`;
    const main = kind === 'sync' ? 'main()' : 'asyncio.run(main())';
    const begun = await output(
      asWritten(`${head}
async def main():
    url, pending = await sign_in.begin(prompt="consent")
    print(json.dumps({"url": url, "pending": pending}))
`) + main,
    );
    const { url, pending } = JSON.parse(begun) as { url: string; pending: object };
    const back = await oauth.browser().authorize(new URL(url), { username });
    const program = `${head}
async def main():
    back, pending = os.environ["BACK"], json.loads(os.environ["PENDING"])
    codes = []
    for strange in (back.replace("state=", "state=x"), back.replace("iss=", "iss=x"), back.replace("code=", "error=access_denied&code=")):
        try:
            await sign_in.finish(strange, pending)
        except SignInError as error:
            codes.append(error.code)
    tokens = await sign_in.finish(back, pending)
    saved = []
    async def save(renewed):
        saved.append(renewed)
    async with AsyncClient(issuer, token=sign_in.token({**tokens, "expires_at": time.time()}, save)) as api:
        me = (await api.me())["id"]
        await api.profile()
    async with AsyncClient(issuer, token=sign_in.token({**saved[-1], "access_token": "x" * 43}, save)) as api:
        await api.me()
    last = saved[-1]
    await sign_in.revoke(last)
    try:
        await sign_in.refresh(last)
    except SignInError as error:
        codes += [error.code, str(error)]
    days = round((last["access_ends_at"] - time.time()) / 86_400)
    print(json.dumps({"scope": sorted(tokens["scope"].split()), "me": me, "saved": len(saved), "codes": codes, "days": days}))
`;
    const environment = { BACK: back.href, PENDING: JSON.stringify(pending) };
    expect(JSON.parse(await output(asWritten(program) + main, environment))).toEqual({
      scope: ['events:read', 'profile:read'],
      me: id,
      saved: 2,
      days: 30,
      codes: [
        'state_mismatch',
        'state_mismatch',
        'access_denied',
        'signed_out',
        expect.stringMatching(/^the access ended at .+ UTC: ended by the app$/),
      ],
    });
  });

  it('stays signed in for a year with one sign-in, through lost responses, restarts and new keys', async () => {
    const year = await Year.start();
    const program = (body: string) =>
      output(
        `
import json, os
from public_user_api import Client, SignIn

issuer = "${year.oauth.issuer}"
kept = "${join(folder, 'tokens.json')}"
sign_in = SignIn(issuer, client_id="${year.clientId}", redirect_uri="${REDIRECT_URI}", scope="profile:read")
def save(tokens):
    with open(kept, "w") as file:
        json.dump(tokens, file)
${body}`,
      );
    try {
      const begun = await program('print(json.dumps(sign_in.begin()))');
      const [url, pending] = JSON.parse(begun) as [string, object];
      const back = await year.signIn(url);
      const literal = (value: unknown) => JSON.stringify(JSON.stringify(value));
      await program(
        `save(sign_in.finish(json.loads(${literal(back.href)}), json.loads(${literal(pending)})))`,
      );
      await year.pass(async () =>
        JSON.parse(
          await program(`with Client(issuer, token=sign_in.token(json.load(open(kept)), save)) as api:
    try:
        print(api.me()["id"])
    except Exception:
        print(api.me()["id"])`),
        ),
      );
    } finally {
      await year.close();
    }
  });

  it('accepts only a recent webhook message with a valid signature', async () => {
    const [secret, other] = [makeWebhookSecret(), makeWebhookSecret()];
    const body = JSON.stringify({ type: 'events.updated', data: { id: 5 } });
    const headers = webhookHeaders(secret, body);
    const cases = [
      [secret, headers, body],
      [[other, secret], headers, body],
      [secret, headers, `${body} `],
      [other, headers, body],
      [secret, webhookHeaders(secret, body, 360), body],
      [secret, {}, body],
    ];
    const program = `
import json, os
from public_user_api import WebhookError, verify_webhook

for secrets, headers, body in json.loads(os.environ["CASES"]):
    try:
        print(verify_webhook(secrets, headers, body.encode())["data"]["id"])
    except WebhookError as error:
        print(error)
`;
    expect(await output(program, { CASES: JSON.stringify(cases) })).toBe(
      `5
5
No signature of the message is genuine.
No signature of the message is genuine.
The message is too old, or a clock is wrong.
The headers of a webhook are missing.
`,
    );
  });
});
