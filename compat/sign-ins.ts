import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@jest/globals';
import type { NewClient } from '../src/clients/clients.service.js';
import { rotate, storeSecret } from '../test/support/client-kinds.js';
import { OauthTest, REDIRECT_URI } from '../test/support/oauth.js';
import { mavenJars } from '../test/support/packages.js';
import {
  cargoInstall,
  goInstall,
  installLanguage,
  languagesIn,
  programsIn,
  startProgram,
  type Language,
} from './languages.js';

/*
 * Unmodified third-party libraries, each in its own language. The language's folder pins versions and hashes.
 */

const HERE = import.meta.dirname;
const run = promisify(execFile);

/** Lists the programs in a folder here, by name. */
export const inHere = (folder: string, extension: string) => programsIn(join(HERE, folder), extension);

/** Downloads jars, and compiles the programs and their harness. */
async function mavenInstall(folder: string, files: readonly string[]): Promise<void> {
  const jars = await mavenJars(folder);
  const sources = [join(HERE, 'java/Harness.java'), ...files];
  await run('javac', ['-nowarn', '-cp', `${jars}/*`, '-d', join(folder, 'classes'), ...sources]);
}

const javaCommand = (folder: string, program: string) =>
  ['java', '-cp', `${folder}/classes:${folder}/jars/*`, program] as const;

/** The frameworks' fixed redirect URIs. */
const FRAMEWORK_URIS = ['/auth/callback/platform', '/login/oauth2/code/platform', '/oauth2/callback'].map(
  (path) => `https://app.example${path}`,
);

type AuthMethod = 'none' | NonNullable<NewClient['secret_auth_method']>;

export const LANGUAGES: Record<string, Language> = {
  ...languagesIn(HERE),
  'oauth2-proxy': {
    programs: { proxy: join(HERE, 'oauth2-proxy/main.go') },
    needs: ['go', 'version'],
    install: goInstall('tool'),
    command: (folder, program) => [join(folder, 'bin', program)],
  },
  java: {
    programs: inHere('java', '.java'),
    needs: ['mvn', '--version'],
    install: (folder) => mavenInstall(folder, Object.values(LANGUAGES.java!.programs)),
    command: javaCommand,
  },
  spring: {
    programs: { Spring: join(HERE, 'spring/Spring.java') },
    needs: ['mvn', '--version'],
    install: (folder) => mavenInstall(folder, [join(HERE, 'spring/Spring.java')]),
    command: javaCommand,
  },
  rust: {
    programs: inHere('rust', '.rs'),
    needs: ['cargo', '--version'],
    install: cargoInstall,
    command: (folder, program) => [join(folder, 'target/debug', program)],
  },
  ruby: {
    programs: inHere('ruby', '.rb'),
    needs: ['ruby', '-e', '%w[oauth2 rack/oauth2 openid_connect].each { |name| require name }'],
    install: () => Promise.resolve(),
    command: (folder, program) => ['ruby', join(folder, `${program}.rb`)],
  },
};

/** A run of a program: its authentication method and ID token algorithm. */
export type Run = [program: string, auth: AuthMethod, alg: 'ES256' | 'RS256'];

/** Lists each program with each of its authentication methods. */
export function runsOf({ programs }: Language): Run[] {
  return Object.entries(programs).flatMap(([program, file]) => {
    const source = readFileSync(file, 'utf8');
    const said = (what: string) => new RegExp(`^(?://!?|#) ${what}: (.+)$`, 'm').exec(source)?.[1];
    const methods = (said('auth') ?? 'none').split(' ') as AuthMethod[];
    const alg = said('id-token') === 'RS256' ? 'RS256' : 'ES256';
    return methods.map((auth): Run => [program, auth, alg]);
  });
}

/** A server, a member, and the folder in which libraries are installed. */
export class SignIns {
  private constructor(
    readonly root: string,
    readonly oauth: OauthTest,
    readonly username: string,
  ) {}

  static async start(): Promise<SignIns> {
    const root = mkdtempSync(join(tmpdir(), 'pua-libraries-'));
    const oauth = await OauthTest.start();
    return new SignIns(root, oauth, (await oauth.member()).username);
  }

  async close(): Promise<void> {
    await this.oauth.close();
    rmSync(this.root, { recursive: true, force: true });
  }

  install(name: string): Promise<void> {
    return installLanguage(name, LANGUAGES[name]!, join(HERE, name), join(this.root, name));
  }

  /** Signs the member in with a program, which calls the API, renews its token if it can, and calls again. */
  async signIn(name: string, [program, auth, alg]: Run, secret?: string): Promise<void> {
    const { oauth, root, username } = this;
    const clientId = await oauth.client({
      redirect_uris: [REDIRECT_URI, ...FRAMEWORK_URIS],
      id_token_signed_response_alg: alg,
      ...(auth === 'none' ? {} : { profile: 'oidc', secret_auth_method: auth }),
    });
    if (secret !== undefined) await storeSecret(oauth, clientId, secret);
    const { child, errors, lines } = startProgram(LANGUAGES[name]!, join(root, name), program, {
      ISSUER: oauth.issuer,
      CLIENT_ID: clientId,
      REDIRECT_URI,
      AUTH: auth,
      CLIENT_SECRET: auth === 'none' ? '' : (secret ?? (await rotate(oauth, clientId))),
    });
    const url = await lines.next();
    if (url.done) throw new Error(await errors);
    const back = await oauth.browser().authorize(url.value as string, { username });
    child.stdin.end(`${back.href}\n`);
    const answer = await lines.next();
    if (answer.done) throw new Error(await errors);
    expect(JSON.parse(answer.value as string)).toEqual({ username, again: username });
  }
}
