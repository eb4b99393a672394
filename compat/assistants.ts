import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ConnectedApps } from '../src/clients/connected-apps.js';
import { ALL_SCOPES } from '../src/auth/scopes.js';
import { PublicHttps } from '../src/runtime/public-https.js';
import { DocumentSite, sendJson } from '../test/support/document-site.js';
import {
  cargoInstall,
  installLanguage,
  languagesIn,
  startProgram,
  type Language,
  type RunningProgram,
} from './languages.js';
import { freePort, OauthTest } from '../test/support/oauth.js';
import { makePython } from '../test/support/packages.js';
import { until } from '../test/support/timing.js';

/*
 * Released clients of the Model Context Protocol. Each receives the URL of the server and of its client document, finds the sign-in, gets
 * a token, lists the tools, reads the week, and changes the bio until it exceeds the write limit. Then the member ends its access.
 */

const HERE = join(import.meta.dirname, 'assistants');
const PATH = '/api/public/mcp';

const RUST: Language = {
  programs: { assistants: join(HERE, 'rust/src/main.rs') },
  needs: ['cargo', '--version'],
  install: cargoInstall,
  command: (folder, program) => [join(folder, 'target/debug', program)],
};
/**
 * Programs that request no other scope after a 403, with their output. To write, they request all scopes at the first sign-in.
 */
const WITHOUT_STEP_UP: Readonly<Record<string, RegExp>> = {
  'node/ai-sdk': /needs the scope profile:write/,
  'node/sdk': /upscoping/,
  'node/sdk-1.24': /upscoping/,
  'python-older/older_mcp_use_client': /connection loss/,
  'go/mcp-go': /needs the scope profile:write/,
  'rust/assistants': /insufficient scope/i,
};
const { node, python, go } = languagesIn(HERE);
const OLDER = /^older_|^fastmcp/;
const pythonPrograms = (isIncluded: (program: string) => boolean) =>
  Object.fromEntries(Object.entries(python.programs).filter(([program]) => isIncluded(program)));
/** Languages of the assistants' clients. */
export const LANGUAGES = {
  node,
  python: { ...python, programs: pythonPrograms((program) => !program.startsWith('older_')) },
  'python-older': {
    ...python,
    programs: pythonPrograms((program) => OLDER.test(program)),
    install: (folder) => makePython(folder, join(folder, 'requirements-older.txt')),
  },
  go,
  rust: RUST,
} satisfies Record<string, Language>;

/** Defines the tests of these programs. */
export function describeAssistants(languages: Record<string, Language>): void {
  describe('MCP clients sign a member in with only the server’s URL, and call its tools:', () => {
    let root: string;
    let oauth: OauthTest;
    let site: DocumentSite;
    let member: { readonly id: number; readonly username: string };
    /** Requests to the server and their status. */
    const seen: string[] = [];
    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), 'pua-assistants-'));
      oauth = await OauthTest.start({
        assistants: true,
        clientIdMetadataDocuments: true,
        rateLimits: { read: 1e6, write: 2, auth: 1e6 },
      });
      const { app, platform } = oauth.api;
      app.get(PublicHttps).isAllowed = () => true; // as if the documents were on the internet
      app
        .getHttpServer()
        .on('request', ({ method, url }, response) =>
          response.on('finish', () => seen.push(`${method} ${url!.split('?')[0]} ${response.statusCode}`)),
        );
      site = await DocumentSite.start(({ headers: { host }, url }, response) =>
        sendJson(response, {
          client_id: `https://${host}${url}`,
          client_name: 'Week planner',
          redirect_uris: ['127.0.0.1', 'localhost'].map(
            (host) => `http://${host}:${url!.split('/').at(-1)}/callback`,
          ),
          grant_types: ['authorization_code', 'refresh_token'],
          token_endpoint_auth_method: 'none',
        }),
      );
      member = await oauth.member();
      for (const [title, days] of Object.entries({ Choir: 2, Harvest: 30 })) {
        const starts_at = new Date(Date.now() + days * 86_400_000).toISOString();
        await platform.participant(await platform.event({ title, starts_at }), member.id);
      }
    });
    afterAll(async () => {
      site.close();
      await oauth.close();
      rmSync(root, { recursive: true, force: true });
    });

    describe.each(Object.entries(languages))('%s', (name, language) => {
      const folder = () => join(root, name);
      beforeAll(() => installLanguage(name, language, join(HERE, name.replace('-older', '')), folder()));

      let running: RunningProgram | undefined;
      afterEach(() => void running?.child.kill());

      /** Runs a program from sign-in until its access has ended. @returns what the program printed about its write */
      async function run(program: string, scope = ''): Promise<string> {
        const port = await freePort();
        const client = `${site.at}/${program}/${port}`; // its document contains the redirect port
        seen.length = 0;
        running = startProgram(language, folder(), program, {
          ADDRESS: oauth.issuer + PATH,
          CLIENT: client,
          REDIRECT_URI: `http://127.0.0.1:${port}/callback`,
          SCOPE: scope,
          BROWSER: 'echo', // for programs that open a browser
          HOME: mkdtempSync(join(root, 'home-')), // where some programs store their tokens
        });
        const { child, lines, errors } = running;
        const next = async (): Promise<string> => {
          const line = await lines.next();
          if (line.done) throw new Error(`${await errors}\n${seen.join('\n')}`);
          return /^(?:http|\{)/.test(line.value) ? line.value : next();
        };
        /** Signs the member in. @returns the program's next output */
        const signIn = async (url: URL): Promise<string> => {
          expect(url.searchParams.get('client_id')).toBe(client);
          expect(url.searchParams.get('resource')).toBe(oauth.issuer + PATH);
          const back = await oauth.browser().authorize(url, member);
          const line = next();
          const printed = line.then(
            () => true,
            () => true,
          );
          child.stdin.write(`${back.href}\n`);
          // The program reads this URL from its input, or listens at it; some start to listen only after they printed the sign-in URL.
          const arrived = () =>
            fetch(back).then(
              () => true,
              () => false,
            );
          await until(() => Promise.race([printed, arrived()]));
          return line;
        };
        const titlesOf = (week: string) => JSON.parse(week).data.map(({ title }: { title: string }) => title);

        const { tools, week } = JSON.parse(await signIn(new URL(await next())));
        expect(tools).toEqual(expect.arrayContaining(['get_profile', 'update_profile', 'list_events']));
        expect(titlesOf(week)).toEqual(['Choir']);
        const metadata = `GET /.well-known/oauth-protected-resource${PATH} 200`;
        // Some programs first send a GET or request the metadata.
        expect([`POST ${PATH} 401`, `GET ${PATH} 401`, metadata]).toContain(seen[0]);
        expect(seen).toContain(metadata);

        let line = await next();
        if (line.startsWith('http')) {
          const url = new URL(line);
          expect(url.searchParams.get('scope')).toContain('profile:write');
          line = await signIn(url);
        }
        const { written } = JSON.parse(line);
        const over = JSON.parse(await next());
        if (written.startsWith('{')) expect(over.limited).toMatch(/"retry_after":\d+/);
        expect(titlesOf(over.week)).toEqual(['Choir']);

        await oauth.api.app.get(ConnectedApps).revoke(member.id, client, { actor: 'user' });
        seen.length = 0;
        child.stdin.write('ended\n');
        // The program reports that access has ended, or asks the member to sign in again.
        expect(await next()).toMatch(/^http|"refused": ?"(?!\{)/);
        child.kill();
        expect(seen).toContain(`POST ${PATH} 401`);
        expect(seen).not.toContain(`POST ${PATH} 200`);
        return written;
      }

      it.each(Object.keys(language.programs))('%s', async (program) => {
        const rejected = WITHOUT_STEP_UP[`${name}/${program}`];
        if (rejected) expect(await run(program)).toMatch(rejected);
        const written = await run(program, rejected && ALL_SCOPES.join(' '));
        expect(JSON.parse(written)).toMatchObject({ profile: { bio: 'Here for the hikes' } });
      });
    });
  });
}
