import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import type { Config } from '../../src/config/config.js';
import { freePort, OauthTest, type Browser, type FormPage } from './oauth.js';

/** Flags of authenticator data (WebAuthn level 3, §6.1). */
const FLAGS = { present: 0x01, verified: 0x04, backupEligible: 0x08, backedUp: 0x10, attested: 0x40 };

/** Deviations of a proof from a valid one. */
export interface Changes {
  readonly origin?: string;
  readonly rpId?: string;
  readonly type?: string;
  readonly challenge?: string;
  readonly crossOrigin?: boolean;
  readonly userHandle?: string;
  /** Replaces the authenticator's flags. */
  readonly flags?: number;
  readonly credentialId?: Buffer;
  readonly signature?: Buffer;
  /** Attestation format and statement, in CBOR. */
  readonly attestation?: readonly [format: string, statement: Buffer];
}

interface Options {
  readonly challenge: string;
  readonly rpId?: string;
  readonly rp?: { readonly id: string };
  readonly user?: { readonly id: string };
}

const cbor = {
  head: (major: number, length: number): Buffer =>
    length < 24
      ? Buffer.from([(major << 5) | length])
      : length < 256
        ? Buffer.from([(major << 5) | 24, length])
        : Buffer.from([(major << 5) | 25, length >> 8, length & 255]),
  bytes: (value: Buffer): Buffer => Buffer.concat([cbor.head(2, value.length), value]),
  text: (value: string): Buffer =>
    Buffer.concat([cbor.head(3, Buffer.byteLength(value)), Buffer.from(value)]),
};

/** A statement with a certificate, as in `packed` attestation (WebAuthn level 3, §8.2). */
export function withCertificate(certificate: Buffer): readonly [string, Buffer] {
  const statement = Buffer.concat([
    cbor.head(5, 3),
    cbor.text('alg'),
    Buffer.from([0x26]),
    cbor.text('sig'),
    cbor.bytes(randomBytes(70)),
    cbor.text('x5c'),
    cbor.head(4, 1),
    cbor.bytes(certificate),
  ]);
  return ['packed', statement];
}

/** An authenticator with one passkey (ES256), as a page's script sees it. */
export class Authenticator {
  readonly credentialId = randomBytes(32);
  readonly #key: KeyObject;
  readonly #publicKey: Buffer;
  /** User handle of the member that it signs in, in base64url. */
  userHandle = '';

  /** @param signCount of the next proof; 0 without a counter @param backup whether the passkey may be, and is, synced */
  constructor(
    readonly origin: string,
    public signCount = 0,
    readonly backup: { readonly eligible: boolean; readonly done: boolean } = {
      eligible: false,
      done: false,
    },
  ) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x, y } = publicKey.export({ format: 'jwk' });
    this.#key = privateKey;
    this.#publicKey = Buffer.concat([
      Buffer.from('a5010203262001', 'hex'),
      Buffer.from('21', 'hex'),
      cbor.bytes(Buffer.from(x!, 'base64url')),
      Buffer.from('22', 'hex'),
      cbor.bytes(Buffer.from(y!, 'base64url')),
    ]);
  }

  /** The script's request after it has created the passkey. */
  register(options: Options, changes: Changes = {}): string {
    this.userHandle = options.user!.id;
    const id = changes.credentialId ?? this.credentialId;
    const length = Buffer.from([id.length >> 8, id.length & 255]);
    const data = Buffer.concat([
      this.#data(options.rp!.id, FLAGS.attested, changes),
      Buffer.alloc(16),
      length,
      id,
      this.#publicKey,
    ]);
    const [format, statement] = changes.attestation ?? ['none', Buffer.from([0xa0])];
    const attestation = Buffer.concat([
      cbor.head(5, 3),
      cbor.text('fmt'),
      cbor.text(format),
      cbor.text('attStmt'),
      statement,
      cbor.text('authData'),
      cbor.bytes(data),
    ]);
    return JSON.stringify({
      id: id.toString('base64url'),
      type: 'public-key',
      response: {
        clientDataJSON: this.#clientData('webauthn.create', options, changes).toString('base64url'),
        attestationObject: attestation.toString('base64url'),
        transports: ['internal'],
      },
    });
  }

  /** The script's request after the member has chosen the passkey. */
  prove(options: Options, changes: Changes = {}): string {
    const data = this.#data(options.rpId!, 0, changes);
    const clientData = this.#clientData('webauthn.get', options, changes);
    const hash = createHash('sha256').update(clientData).digest();
    const signature = changes.signature ?? sign('sha256', Buffer.concat([data, hash]), this.#key);
    if (this.signCount > 0) this.signCount++;
    return JSON.stringify({
      id: (changes.credentialId ?? this.credentialId).toString('base64url'),
      type: 'public-key',
      response: {
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signature.toString('base64url'),
        userHandle: changes.userHandle ?? this.userHandle,
      },
    });
  }

  #data(rpId: string, more: number, { rpId: other, flags }: Changes): Buffer {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(this.signCount);
    const own =
      FLAGS.present |
      FLAGS.verified |
      (this.backup.eligible ? FLAGS.backupEligible : 0) |
      (this.backup.done ? FLAGS.backedUp : 0);
    const hash = createHash('sha256')
      .update(other ?? rpId)
      .digest();
    return Buffer.concat([hash, Buffer.from([(flags ?? own) | more]), count]);
  }

  #clientData(type: string, { challenge }: Options, changes: Changes): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: changes.type ?? type,
        challenge: changes.challenge ?? challenge,
        origin: changes.origin ?? this.origin,
        crossOrigin: changes.crossOrigin ?? false,
      }),
    );
  }
}

/** Starts an application on a hostname, since browsers create no passkey for an IP address. @param beside see {@link OauthTest.start} */
export async function startWithPasskeys(
  overrides: Partial<Config> = {},
  beside?: OauthTest,
): Promise<OauthTest> {
  const port = await freePort();
  return OauthTest.start({ port, publicUrl: `http://localhost:${port}`, ...overrides }, beside);
}

/** The options that the page's script gets from the server. */
export async function optionsFor(browser: Browser, page: FormPage): Promise<Required<Options>> {
  const path = /id="passkey"[^>]*data-options="([^"]+)"/.exec(page.html)?.[1];
  if (path === undefined) throw new Error(`there is no passkey form: ${page.html}`);
  const response = await browser.post(page, path);
  if (response.status !== 200) throw new Error(`${response.status} at ${path}: ${await response.text()}`);
  return (await response.json()) as Required<Options>;
}

/** The action of the page's passkey form. */
export function actionOf(page: FormPage): string {
  return /id="passkey"[^>]*action="([^"]+)"/.exec(page.html)![1]!;
}

/** Signs a member in with the password at the security page. */
export async function atSecurity(oauth: OauthTest, username: string, browser = oauth.browser()) {
  return { browser, page: await browser.signIn('/account/security', username) };
}

/** Adds a passkey to a member as the page's script does. */
export async function addPasskey(
  browser: Browser,
  authenticator: Authenticator,
  name = 'Laptop',
): Promise<FormPage> {
  const page = await browser.view('/account/security');
  const credential = authenticator.register(await optionsFor(browser, page));
  const added = await browser.press(page, { credential, name }, /\/passkeys$/);
  if (!added.html.includes('You can sign in with your new passkey.'))
    throw new Error(`${added.status}: ${/role="alert">\s*(.*)/.exec(added.html)?.[1]}`);
  return added;
}

/** Makes a member with a passkey, and their authenticator. */
export async function memberWithPasskey(
  oauth: OauthTest,
  authenticator = new Authenticator(oauth.issuer),
  fields: Record<string, unknown> = {},
) {
  const member = await oauth.member(fields);
  const { browser } = await atSecurity(oauth, member.username);
  await addPasskey(browser, authenticator);
  return { ...member, browser, authenticator };
}
