import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { makeWebhookSecret } from '../../src/crypto/webhook-signatures.js';
import { organizer, webhookHeaders } from '../support/client-packages.js';
import { postgres } from '../support/database.js';
import { cutOff, reply, serveReplies } from '../support/http-server.js';
import { OauthTest, REDIRECT_URI } from '../support/oauth.js';
import { Year } from '../support/year.js';

const PACKAGE = 'clients/go';
const MODULE = 'public-user-api.example/publicuserapi';
const run = promisify(execFile);

postgres.describe('the Go client', () => {
  let oauth: OauthTest;
  let folder: string;
  let environment: NodeJS.ProcessEnv;

  /** Runs a program with the module like a partner: from the server's own proxy, in an empty folder and with an empty cache. */
  async function output(program: string, env: Record<string, string> = {}): Promise<string> {
    const place = mkdtempSync(join(folder, 'program-'));
    writeFileSync(join(place, 'main.go'), program);
    for (const name of ['go.mod', 'go.sum'])
      writeFileSync(join(place, name), readFileSync(join(folder, 'app', name)));
    const { stdout } = await run('go', ['run', '.'], {
      cwd: place,
      env: { ...environment, GOPROXY: 'off', API_URL: oauth.issuer, ...env },
    });
    return stdout;
  }

  beforeAll(async () => {
    oauth = await OauthTest.start();
    folder = mkdtempSync(join(tmpdir(), 'pua-go-'));
    environment = {
      ...process.env,
      GOTOOLCHAIN: 'local',
      GOFLAGS: '-modcacherw',
      GOMODCACHE: join(folder, 'modules'),
      GOPROXY: `${oauth.issuer}/clients/go,off`,
      GONOSUMDB: 'public-user-api.example',
    };
    const app = join(folder, 'app');
    mkdirSync(app);
    await run('go', ['mod', 'init', 'app'], { cwd: app, env: environment });
    await run('go', ['get', `${MODULE}@latest`], { cwd: app, env: environment });
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await oauth.close();
  });

  it('has the types of the OpenAPI document (node generate-types.mjs in clients/go)', async () => {
    const { goTypesOf } = (await import('../../clients/go/generate-types.mjs' as string)) as {
      goTypesOf: (document: unknown) => string;
    };
    const document: unknown = await (await fetch(`${oauth.issuer}/api/public/openapi.json`)).json();
    expect(readFileSync(`${PACKAGE}/schema.go`, 'utf8')).toBe(goTypesOf(document));
  });

  it('is formatted by gofmt, passes vet, and needs no other module', async () => {
    expect((await run('gofmt', ['-l', PACKAGE])).stdout).toBe('');
    await run('go', ['-C', PACKAGE, 'vet', './...'], { env: environment });
    expect(readFileSync(`${PACKAGE}/go.mod`, 'utf8')).toBe(`module ${MODULE}\n\ngo 1.24\n`);
  });

  it('has a working program in its README', async () => {
    const [, program, signIn] = Array.from(
      readFileSync(`${PACKAGE}/README.md`, 'utf8').matchAll(/```(?:go|sh)\n([^]*?)```/g),
      ([, code]) => code!,
    );
    const { key } = await organizer(oauth, 2);
    expect(await output(program!, { API_KEY: key })).toMatch(
      /^The events of Ada:\n[\d :-]+ Event \d\n[\d :-]+ Event \d\nprecondition_failed\n$/,
    );
    await output(`package main

import (
	"context"

	"${MODULE}"
)

type Session struct{ Tokens *publicuserapi.Tokens }

func (s *Session) Save(_ context.Context, tokens *publicuserapi.Tokens) error { s.Tokens = tokens; return nil }

${signIn}
func main() { _, _ = apiOf(&Session{}) }
`);
  });

  it('calls every operation, and iterates over the items and the pages of a list', async () => {
    const { id, key } = await organizer(oauth, 5);
    const program = `package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	pua "${MODULE}"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func codeOf(_ any, err error) string {
	var refused *pua.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func main() {
	ctx := context.Background()
	api := must(pua.New(os.Getenv("API_URL"), pua.APIKey(os.Getenv("API_KEY"))))
	titles := []string{}
	online := false
	query := pua.EventsQuery{Limit: 2, Sort: "title", Status: []string{"scheduled", "draft"}, IsOnline: &online}
	for event, err := range api.Events(query).All(ctx) {
		titles = append(titles, must(event, err).Title)
	}
	counts := []int{}
	for page, err := range api.Events(query).Pages(ctx) {
		if counts = append(counts, len(must(page, err).Data)); len(counts) == 2 {
			break
		}
	}
	profile, etag, err := api.ProfileWithETag(ctx)
	must(profile, err)
	changed := must(api.UpdateProfile(ctx, pua.ProfileChanges{Bio: pua.Set("Hello"), LastName: pua.Clear[string]()}, etag))
	lost := codeOf(api.UpdateProfile(ctx, pua.ProfileChanges{Bio: pua.Set("lost")}, etag))
	invalid := pua.ProfileChanges{Bio: pua.Set(string(make([]byte, 501)))}
	_, err = api.UpdateProfile(ctx, invalid, "")
	var refused *pua.Error
	errors.As(err, &refused)
	first := must(api.Events(pua.EventsQuery{}).Page(ctx, "")).Data[0]
	since := must(api.Changes(ctx, pua.SyncQuery{Resources: []string{"events"}})).Next
	var failed error
	for _, failed = range api.Events(pua.EventsQuery{Sort: "unknown"}).All(ctx) {
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"titles":       titles,
		"counts":       counts,
		"me":           must(api.Me(ctx)).ID,
		"bio":          must(api.Profile(ctx)).Bio,
		"changed":      []any{changed.Bio, changed.LastName, changed.FirstName},
		"lost":         lost,
		"field":        refused.Problem.Errors[0].Field,
		"request":      refused.RequestID != "",
		"event":        must(api.Event(ctx, first.ID)).ID == first.ID,
		"connections":  must(api.Connections(pua.ConnectionsQuery{Status: []string{"accepted"}}).Page(ctx, "")).Pagination.Total,
		"own":          must(api.Achievements(pua.EarnedAchievementsQuery{}).Page(ctx, "")).Pagination.Total,
		"achievements": must(api.AllAchievements(pua.AllAchievementsQuery{Earned: &online}).Page(ctx, "")).Pagination.Sort,
		"pinned":       must(api.PinnedAchievements(ctx)),
		"earned":       must(api.AchievementStatistics(ctx)).Earned,
		"missing":      codeOf(api.Achievement(ctx, 1_000_000)),
		"changes":      must(api.Changes(ctx, pua.SyncQuery{Resources: []string{"events"}, Cursor: since, Include: "data"})).Resources,
		"type":         must(api.Credential(ctx)).Type,
		"failed":       codeOf(nil, failed),
	})
}
`;
    expect(JSON.parse(await output(program, { API_KEY: key }))).toEqual({
      titles: ['Event 0', 'Event 1', 'Event 2', 'Event 3', 'Event 4'],
      counts: [2, 2],
      me: id,
      bio: 'Hello',
      changed: ['Hello', null, 'Ada'],
      lost: 'precondition_failed',
      field: 'bio',
      request: true,
      event: true,
      connections: 0,
      own: 0,
      achievements: 'position',
      pinned: [],
      earned: 0,
      missing: 'achievement_not_found',
      changes: ['events'],
      type: 'api_key',
      failed: 'invalid_parameter',
    });
  });

  it('retries reads, sends an ETag, renews a rejected token, times out, and reports responses without JSON', async () => {
    const server = await serveReplies();
    const API_URL = server.url;
    const now = { 'Retry-After': '0' };
    const html = { 'Content-Type': 'text/html; charset=utf-8' };
    const answer = (status: number, headers?: Record<string, string>, body = '{"id":7}') =>
      reply(status, headers, body);
    server.replies = [
      ...[429, 503, 502, 504].flatMap((status) => [answer(status, now), answer(200)]),
      cutOff,
      answer(200, { ETag: '"one"' }),
      answer(304),
      answer(503, now),
      answer(503, now),
      answer(503, now),
      answer(429, { 'Retry-After': '60' }, '{"code":"rate_limited","title":"Too many","detail":"Wait."}'),
      answer(200, html, '<h1>Welcome</h1>'),
      answer(302, { Location: '/elsewhere', ...html }, ''),
      answer(401),
      answer(502, now),
      answer(401),
      answer(401),
      answer(503, { 'Retry-After': '5' }),
      () => undefined,
    ];
    const program = `package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	pua "${MODULE}"
)

func main() {
	ctx := context.Background()
	url := os.Getenv("API_URL")
	api, _ := pua.New(url, pua.APIKey("key"))
	say := func(value any, err error) {
		if err != nil {
			value = err
		}
		var refused *pua.Error
		if errors.As(err, &refused) && refused.RetryAfter != nil {
			value = fmt.Sprint(refused.Code, " ", *refused.RetryAfter)
		}
		fmt.Println(value)
	}
	me := func(api *pua.Client) {
		me, err := api.Me(ctx)
		if err != nil {
			say(nil, err)
			return
		}
		say(me.ID, err)
	}
	for range 11 {
		me(api)
	}
	_, err := api.UpdateProfile(ctx, pua.ProfileChanges{}, "")
	say(nil, err)
	tokens := []string{"first", "second"}
	renewing, _ := pua.New(url, pua.Token(func(_ context.Context, refused string) (string, error) {
		if refused == tokens[0] {
			tokens = tokens[1:]
		}
		return tokens[0], nil
	}))
	me(renewing)
	left, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	_, err = api.Event(left, 1)
	say(errors.Is(err, context.DeadlineExceeded), nil)
	hurried, _ := pua.New(url, pua.APIKey("key"), pua.WithTimeout(200*time.Millisecond), pua.WithRetries(0))
	_, err = hurried.Event(ctx, 2)
	say(errors.Is(err, context.DeadlineExceeded), nil)
	_, err = pua.New("localhost:3000", pua.APIKey("key"))
	say(nil, err)
}
`;
    const strange = (status: number, type: string, path = 'me') =>
      `HTTP ${status} with ${type} instead of JSON, from ${API_URL}/api/public/${path}: a proxy responded, or baseURL is not the API's URL.`;
    const printed = await output(program, { API_URL }).finally(server.close);
    expect(printed.trim().split('\n')).toEqual([
      ...Array<string>(6).fill('7'),
      'unknown 0s',
      'rate_limited 1m0s',
      strange(200, 'text/html'),
      strange(302, 'text/html'),
      strange(401, 'nothing'),
      'unknown 0s',
      strange(401, 'nothing'),
      'true',
      'true',
      'baseURL is "localhost:3000", which is not an http or https URL',
    ]);
    expect(server.replies).toEqual([]);
    const sent = server.seen.flatMap(({ authorization }) => authorization ?? []);
    expect(sent).toEqual(['Bearer first', 'Bearer second']);
    expect(server.seen.map((headers) => headers['if-none-match'])).toContain('"one"');
  });
  it('signs a member in, renews an expired or rejected token once, and ends the access', async () => {
    const { id, username } = await oauth.member();
    const clientId = await oauth.client();
    const program = (body: string) => `package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	pua "${MODULE}"
)

func codeOf(_ *pua.Tokens, err error) string {
	var refused *pua.SignInError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	signIn := &pua.SignIn{Issuer: os.Getenv("API_URL"), ClientID: "${clientId}", RedirectURI: "${REDIRECT_URI}", Scope: "profile:read events:read"}
	said := map[string]any{}
	defer func() { json.NewEncoder(os.Stdout).Encode(said) }()
	_, _, _, _, _ = url.Parse, strings.Replace, time.Now, codeOf, sync.WaitGroup{}
${body}
}
`;
    const begun = await output(
      program(`	address, pending, err := signIn.Begin(ctx, "consent")
	said["url"], said["pending"] = must(address, err), pending`),
    );
    const { url, pending } = JSON.parse(begun) as { url: string; pending: object };
    const back = await oauth.browser().authorize(new URL(url), { username });
    const finished = await output(
      program(`	pending := new(pua.Pending)
	json.Unmarshal([]byte(os.Getenv("PENDING")), pending)
	query := must(url.Parse(os.Getenv("BACK"))).Query()
	with := func(name, value string) url.Values {
		other := must(url.ParseQuery(query.Encode()))
		other.Set(name, value)
		return other
	}
	codes := []string{
		codeOf(signIn.Finish(ctx, with("state", "x"), pending)),
		codeOf(signIn.Finish(ctx, with("iss", "https://elsewhere.example"), pending)),
		codeOf(signIn.Finish(ctx, query, nil)),
		codeOf(signIn.Finish(ctx, with("error", "access_denied"), pending)),
	}
	tokens := must(signIn.Finish(ctx, query, pending))
	said["scope"] = len(strings.Fields(tokens.Scope))
	saved := []*pua.Tokens{}
	save := func(_ context.Context, renewed *pua.Tokens) error { saved = append(saved, renewed); return nil }
	expired := *tokens
	expired.ExpiresAt = time.Now()
	api := must(pua.New(signIn.Issuer, signIn.Credentials(&expired, save)))
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() { defer group.Done(); must(api.Profile(ctx)) }()
	}
	group.Wait()
	said["me"] = must(api.Me(ctx)).ID
	wrong := *saved[0]
	wrong.AccessToken = strings.Repeat("x", 43)
	must(must(pua.New(signIn.Issuer, signIn.Credentials(&wrong, save))).Me(ctx))
	said["saved"] = len(saved)
	if err := signIn.Revoke(ctx, saved[1]); err != nil {
		panic(err)
	}
	said["days"] = int(time.Until(saved[1].AccessEndsAt).Hours()/24 + 0.5)
	_, err := signIn.Refresh(ctx, saved[1])
	said["codes"] = append(codes, err.Error())`),
      { BACK: back.href, PENDING: JSON.stringify(pending) },
    );
    expect(JSON.parse(finished)).toEqual({
      scope: 2,
      me: id,
      saved: 2,
      days: 30,
      codes: [
        'state_mismatch',
        'state_mismatch',
        'state_mismatch',
        'access_denied',
        expect.stringMatching(/^signed_out: the access ended at .+ UTC: ended by the app$/),
      ],
    });
  });

  it('stays signed in for a year with one sign-in, through lost responses, restarts and new keys', async () => {
    const year = await Year.start();
    const kept = join(folder, 'tokens.json');
    const program = (body: string, env: Record<string, string> = {}) =>
      output(
        `package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"

	pua "${MODULE}"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func save(_ context.Context, tokens *pua.Tokens) error {
	return os.WriteFile("${kept}", must(json.Marshal(tokens)), 0o600)
}

func main() {
	ctx := context.Background()
	signIn := &pua.SignIn{Issuer: "${year.oauth.issuer}", ClientID: "${year.clientId}", RedirectURI: "${REDIRECT_URI}", Scope: "profile:read"}
	_, _, _ = url.Parse, save, signIn
	said := any(nil)
${body}
	json.NewEncoder(os.Stdout).Encode(said)
}
`,
        env,
      );
    try {
      const begun = await program(`	address, pending, err := signIn.Begin(ctx, "")
	said = []any{must(address, err), pending}`);
      const [url, pending] = JSON.parse(begun) as [string, object];
      const environment = { BACK: (await year.signIn(url)).search, PENDING: JSON.stringify(pending) };
      await program(
        `	pending := new(pua.Pending)
	json.Unmarshal([]byte(os.Getenv("PENDING")), pending)
	save(ctx, must(signIn.Finish(ctx, must(url.ParseQuery(os.Getenv("BACK")[1:])), pending)))`,
        environment,
      );
      await year.pass(async () =>
        JSON.parse(
          await program(`	tokens := new(pua.Tokens)
	json.Unmarshal(must(os.ReadFile("${kept}")), tokens)
	api := must(pua.New(signIn.Issuer, signIn.Credentials(tokens, save)))
	me, err := api.Me(ctx)
	if err != nil {
		me = must(api.Me(ctx))
	}
	said = me.ID`),
        ),
      );
    } finally {
      await year.close();
    }
  });

  it('accepts only a recent webhook message with a valid signature', async () => {
    const [secret, other] = [makeWebhookSecret(), makeWebhookSecret()];
    const body = JSON.stringify({
      type: 'events.updated',
      timestamp: '2026-05-01T18:00:00.123Z',
      data: { id: 5 },
    });
    const message = (by: string, text = body, secondsAgo = 0) => ({
      // Go's JSON reads a header as a list of values.
      headers: Object.fromEntries(
        Object.entries(webhookHeaders(by, body, secondsAgo)).map(([name, value]) => [name, [value]]),
      ),
      body: text,
    });
    const cases = [
      message(secret),
      message(secret, `${body} `),
      message(makeWebhookSecret()),
      message(secret, body, 360),
      { headers: {}, body },
    ];
    const program = `package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	pua "${MODULE}"
)

func main() {
	var cases []struct {
		Headers http.Header
		Body    string
	}
	json.Unmarshal([]byte(os.Getenv("CASES")), &cases)
	for _, each := range cases {
		message, err := pua.VerifyWebhook(each.Headers, []byte(each.Body), "${other}", "${secret}")
		if err != nil {
			fmt.Println(err, errors.Is(err, pua.ErrWebhook))
			continue
		}
		fmt.Println(message.Type, message.Timestamp, message.Data.ID, message.Data.MemberID)
	}
}
`;
    expect(await output(program, { CASES: JSON.stringify(cases) })).toBe(
      `events.updated 2026-05-01 18:00:00.123 +0000 UTC 5 <nil>
not a genuine webhook: no signature matches true
not a genuine webhook: no signature matches true
not a genuine webhook: it is too old, or a clock is wrong true
not a genuine webhook: its headers are missing true
`,
    );
  });
});
