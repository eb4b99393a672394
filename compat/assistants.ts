import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ConnectedApps } from '../src/clients/connected-apps.js';
import { PublicHttps } from '../src/runtime/public-https.js';
import { DocumentSite, sendJson } from '../test/support/document-site.js';
import { cargoInstall, installLanguage, languagesIn, startProgram, type Language } from './languages.js';
import { freePort, OauthTest } from '../test/support/oauth.js';

/*
 * Other people's clients of the Model Context Protocol, as they are: each is given the address and the document that it describes
 * itself by, and by its own means finds where the member signs in, gets a token, lists the tools and asks what there is this week. Then
 * the member ends its access.
 */

const HERE = join(import.meta.dirname, 'assistants');
const PATH = '/api/public/mcp';

const RUST: Language = {
  programs: { assistants: join(HERE, 'rust/src/main.rs') },
  needs: ['cargo', '--version'],
  install: cargoInstall,
  command: (folder, program) => [join(folder, 'target/debug', program)],
};
/** Programs that also change the member's bio. */
const WRITERS = ['client', 'sdk'];
/** Languages in which there are clients for assistants. */
export const LANGUAGES: Record<'node' | 'python' | 'go' | 'rust', Language> = {
  ...languagesIn(HERE),
  rust: RUST,
};

/** Defines the tests of these programs. */
export function describeAssistants(languages: Record<string, Language>): void {
  describe('clients for assistants go from the address to the answer:', () => {
    let root: string;
    let oauth: OauthTest;
    let site: DocumentSite;
    let member: { readonly id: number; readonly username: string };
    /** What was asked of the server, and how it answered. */
    const seen: string[] = [];
    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), 'pua-assistants-'));
      oauth = await OauthTest.start({ assistants: true, clientIdMetadataDocuments: true });
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
          redirect_uris: [`http://127.0.0.1:${url!.split('/').at(-1)}/callback`],
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
      beforeAll(() => installLanguage(name, language, join(HERE, name), folder()));

      it.each(Object.keys(language.programs))('%s', async (program) => {
        const port = await freePort();
        const client = `${site.at}/${program}/${port}`; // its document says that it comes back to this port
        seen.length = 0;
        const { child, lines, errors } = startProgram(language, folder(), program, {
          ADDRESS: oauth.issuer + PATH,
          CLIENT: client,
          REDIRECT_URI: `http://127.0.0.1:${port}/callback`,
          BROWSER: 'echo', // for those that open one
        });
        const next = async () => {
          const line = await lines.next();
          if (line.done) throw new Error(`${await errors}\n${seen.join('\n')}`);
          return line.value;
        };
        const url = new URL(await next());
        expect(url.searchParams.get('client_id')).toBe(client);
        expect(url.searchParams.get('resource')).toBe(oauth.issuer + PATH);
        const back = await oauth.browser().authorize(url, member);
        // It listens there, or reads the address.
        await fetch(back).catch(() => undefined);
        child.stdin.write(`${back.href}\n`);
        expect(JSON.parse(await next())).toEqual({
          tools: expect.arrayContaining(['get_profile', 'update_profile', 'list_events']),
          titles: ['Choir'],
        });
        if (WRITERS.includes(program)) {
          let line = await next();
          // It asks the member for one more scope.
          if (line.startsWith('http')) {
            expect(new URL(line).searchParams.get('scope')).toContain('profile:write');
            child.stdin.write(`${(await oauth.browser().authorize(new URL(line), member)).href}\n`);
            line = await next();
          }
          expect(JSON.parse(line)).toEqual({ bio: 'Here for the hikes' });
        }
        // Rust’s asks for the metadata before it sends a message.
        expect([`POST ${PATH} 401`, `GET ${PATH} 405`]).toContain(seen[0]);
        expect(seen).toContain(`GET /.well-known/oauth-protected-resource${PATH} 200`);

        await oauth.api.app.get(ConnectedApps).revoke(member.id, client, { actor: 'user' });
        seen.length = 0;
        child.stdin.write('ended\n');
        // It says so, or asks the member anew.
        expect(await next()).toMatch(/^http|"refused":"/);
        child.kill();
        expect(seen).toContain(`POST ${PATH} 401`);
        expect(seen).not.toContain(`POST ${PATH} 200`);
      });
    });
  });
}
