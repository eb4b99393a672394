import { Injectable } from '@nestjs/common';
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Request } from 'express';
import { z } from 'zod';
import { Csrf } from '../../accounts/browser-cookies.js';
import { signInOriginOf, type SignInOrigin } from '../../accounts/sign-in/sign-in-origin.js';
import { signInEvent, type RejectionCause, type SignedIn } from '../../accounts/sign-in/sign-in.js';
import { passkeyDomain, SignInMethods, type SignedInMember } from '../../accounts/sign-in/sign-in-methods.js';
import { eventValues, recordAlone, recordEventIf } from '../../audit/audit.js';
import { Config } from '../../config/config.js';
import { randomBytes } from '../../crypto/random.js';
import { Database } from '../../database/database.js';
import type { Passkey } from '../../database/schema/entities/credentials/passkey.entity.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { LIFETIMES } from '../../authorization-server/lifetimes.js';
import { OneTimeStates, type OneTimeModel } from '../../authorization-server/adapters/state.adapter.js';
import type { SignedInUser } from '../rendering/page-contents.js';

const FIND = `SELECT id, user_id, public_key, user_handle, backup_eligible FROM passkeys WHERE credential_id = $1`;

type StoredPasskey = Pick<Passkey, 'id' | 'user_id' | 'public_key' | 'user_handle' | 'backup_eligible'>;

/** Rejects a counter that is not higher, unless both are 0: the passkey may be cloned (WebAuthn level 3, §6.1.1), or the proof was used. */
const USE = `WITH used AS (
  UPDATE passkeys p SET sign_count = $2, backed_up = $3, last_used_at = now() FROM users u
  WHERE p.id = $1 AND u.id = p.user_id AND u.disabled_at IS NULL AND ($2::bigint > p.sign_count OR ($2::bigint = 0 AND p.sign_count = 0))
  RETURNING ${SIGN_INS_VALID_SINCE} AS valid_since, floor(EXTRACT(epoch FROM now()))::bigint AS now
), told AS (${recordEventIf('used', 4)})
SELECT valid_since, now FROM used`;

const IS_DISABLED = 'SELECT FROM users WHERE id = $1 AND disabled_at IS NOT NULL';

interface Challenged {
  /** Purpose to which the response is bound: an app's step, a page with a sign-in, or the session that adds a passkey. */
  readonly of: string;
  /** User handle of the new passkey: base64url. */
  readonly handle?: string;
}

/** EdDSA, ES256 and RS256 (RFC 9053 §2, RFC 8812 §2). */
const ALGORITHMS = [-8, -7, -257];

const bytes = (most: number) => z.base64url().min(1).max(most);

/** Common properties of credentials from the pages' script (WebAuthn level 3, §5.1); parsing drops unknown properties. */
const CREDENTIAL = { id: bytes(1364), type: z.literal('public-key') };
const ASSERTION = z.object({
  ...CREDENTIAL,
  response: z.object({
    clientDataJSON: bytes(4096),
    authenticatorData: bytes(2048),
    signature: bytes(2048),
    userHandle: bytes(88),
  }),
});
const ATTESTATION = z.object({
  ...CREDENTIAL,
  response: z.object({
    clientDataJSON: bytes(4096),
    attestationObject: bytes(8192),
    transports: z
      .array(z.string().regex(/^[a-z-]{1,32}$/))
      .max(10)
      .default([]),
  }),
});

const CLIENT_DATA = z.object({
  challenge: z.string().regex(/^[\w-]{43}$/),
  crossOrigin: z.literal(false).optional(),
});

/** WebAuthn ceremonies (level 3, §7): issues single-use challenges, bound to a browser and a purpose, and verifies the responses. */
@Injectable()
export class PasskeyCeremonies {
  readonly #domain: string | undefined;

  constructor(
    private readonly config: Config,
    private readonly database: Database,
    private readonly states: OneTimeStates,
    private readonly signInMethods: SignInMethods,
    private readonly csrf: Csrf,
  ) {
    this.#domain = passkeyDomain(config);
  }

  /** Whether this server offers passkeys. */
  get areOffered(): boolean {
    return this.#domain !== undefined;
  }

  requireOffered(): void {
    if (!this.areOffered) throw new PageFault(400, 'malformed');
  }

  /** Makes options for `navigator.credentials.get`, without a list of passkeys, which would reveal members. */
  async signInOptions(request: Request, of: string): Promise<PublicKeyCredentialRequestOptionsJSON> {
    return {
      challenge: await this.#challenge('PasskeySignIn', request, { of }),
      rpId: this.#domain!,
      timeout: LIFETIMES.passkeyChallenge * 1000,
      userVerification: 'required',
    };
  }

  /** Signs in with a passkey. @param text the script's credential as JSON @returns undefined if rejected */
  async signIn(text: unknown, request: Request, of: string): Promise<SignedIn | undefined> {
    const from = signInOriginOf(request);
    const credential = parsed(ASSERTION, text);
    const taken = await this.#take('PasskeySignIn', credential, request, of);
    if (!credential || !taken) return undefined;
    const passkey = await this.find(Buffer.from(credential.id, 'base64url'));
    if (!passkey) return undefined;
    const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
    const proof = await verifyAuthenticationResponse({
      response: { ...credential, rawId: credential.id, clientExtensionResults: {} },
      expectedChallenge: taken.challenge,
      ...this.#expected(),
      // 0 skips the library's comparison, which precedes the signature check; `USE` compares the counter of a verified proof.
      credential: { id: credential.id, publicKey: Uint8Array.from(passkey.public_key), counter: 0 },
    }).catch(() => undefined); // throws for any invalid proof
    const { newCounter, credentialBackedUp, credentialDeviceType } = proof?.authenticationInfo ?? {};
    const isWhole =
      proof?.verified === true &&
      passkey.user_handle.equals(Buffer.from(credential.response.userHandle, 'base64url')) &&
      (credentialDeviceType === 'multiDevice') === passkey.backup_eligible;
    if (!isWhole) {
      await this.#refuse(passkey, 'wrong_proof', from);
      return undefined;
    }
    return this.use(passkey, { signCount: newCounter!, backedUp: credentialBackedUp! }, from);
  }

  async find(credentialId: Buffer): Promise<StoredPasskey | undefined> {
    const [passkey] = await this.database.prepared<StoredPasskey>(FIND, [credentialId]);
    return passkey;
  }

  /** Signs in the member of a verified proof. @returns undefined if the member is disabled, or {@link USE} rejects the counter */
  async use(
    passkey: StoredPasskey,
    { signCount, backedUp }: { signCount: number; backedUp: boolean },
    from: SignInOrigin,
  ): Promise<SignedIn | undefined> {
    const { id, user_id: userId, backup_eligible: backupEligible } = passkey;
    const event = eventValues(signInEvent('passkey', userId, from));
    const values = [id, signCount, backedUp, ...event];
    const [used] = await this.database.prepared<{ valid_since: number | null; now: number }>(USE, values);
    if (!used) {
      const disabled = (await this.database.prepared(IS_DISABLED, [userId])).length > 0;
      await this.#refuse(passkey, disabled ? 'disabled' : 'counter_went_back', from);
      return undefined;
    }
    return {
      userId,
      at: used.now,
      validSince: used.valid_since,
      amr: ['pop', 'user'],
      // OpenID Connect EAP ACR Values 1.0 §2: phr is phishing-resistant; with phrh, hardware also protects the key.
      acr: backupEligible ? 'phr' : 'phrh',
    };
  }

  async #refuse({ user_id }: StoredPasskey, cause: RejectionCause, from: SignInOrigin): Promise<void> {
    const event = signInEvent('passkey', user_id, from, cause);
    await recordAlone((text, values) => this.database.prepared(text, values), event);
  }

  async registrationOptions(
    { id: userId, username, display_name }: SignedInUser,
    request: Request,
    of: string,
  ): Promise<PublicKeyCredentialCreationOptionsJSON> {
    const { platformName } = this.config;
    const known = await this.signInMethods.known(userId);
    const handle = known[0]?.user_handle ?? randomBytes(64); // the same for all passkeys of a member
    const id = handle.toString('base64url');
    return {
      challenge: await this.#challenge('PasskeyRegistration', request, { of, handle: id }),
      rp: { id: this.#domain!, name: platformName ?? this.#domain! },
      user: { id, name: username, displayName: display_name },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ alg, type: 'public-key' })),
      timeout: LIFETIMES.passkeyChallenge * 1000,
      attestation: 'none',
      authenticatorSelection: {
        residentKey: 'required',
        requireResidentKey: true,
        userVerification: 'required',
      },
      excludeCredentials: known.map(({ credential_id, transports }) => ({
        id: credential_id.toString('base64url'),
        type: 'public-key',
        transports: transports as AuthenticatorTransport[],
      })),
    };
  }

  /** Adds a passkey. @param text the credential as JSON @returns false if rejected; true also if added before @throws Unconfirmed */
  async register(text: unknown, name: string, by: SignedInMember, request: Request, of: string) {
    const credential = parsed(ATTESTATION, text);
    const taken = await this.#take('PasskeyRegistration', credential, request, of);
    if (!credential) return false;
    if (!taken) {
      const id = Buffer.from(credential.id, 'base64url');
      return (await this.signInMethods.known(by.userId)).some(({ credential_id }) =>
        credential_id.equals(id),
      );
    }
    const info = await this.#verifyRegistration(
      { ...credential, rawId: credential.id, clientExtensionResults: {} },
      taken.challenge,
    );
    if (!info) return false;
    return this.signInMethods.addPasskey(by, {
      credential_id: Buffer.from(info.credential.id, 'base64url'),
      user_handle: Buffer.from(taken.handle!, 'base64url'),
      public_key: Buffer.from(info.credential.publicKey),
      sign_count: info.credential.counter,
      transports: credential.response.transports,
      backup_eligible: info.credentialDeviceType === 'multiDevice',
      backed_up: info.credentialBackedUp,
      name,
    });
  }

  async #verifyRegistration(response: RegistrationResponseJSON, expectedChallenge: string) {
    const [{ verifyRegistrationResponse }, { decodeAttestationObject }] = await Promise.all([
      import('@simplewebauthn/server'),
      import('@simplewebauthn/server/helpers'),
    ]);
    try {
      const attestation = decodeAttestationObject(
        Uint8Array.from(Buffer.from(response.response.attestationObject, 'base64url')),
      );
      // Rejects attestations with certificates: to verify them, the library could fetch a revocation list from an untrusted URL.
      const format = attestation.get('fmt');
      const isPlain = format === 'none' || (format === 'packed' && !attestation.get('attStmt').get('x5c'));
      if (!isPlain) return undefined;
      const { verified, registrationInfo } = await verifyRegistrationResponse({
        response,
        expectedChallenge,
        supportedAlgorithmIDs: ALGORITHMS,
        ...this.#expected(),
      });
      return verified && registrationInfo.credential.id === response.id ? registrationInfo : undefined;
    } catch {
      return undefined; // throws for any invalid response
    }
  }

  #expected() {
    return {
      expectedOrigin: this.config.publicUrl,
      expectedRPID: this.#domain!,
      requireUserVerification: true,
    };
  }

  /** Makes a challenge for the browser. Check its CSRF token first. @throws PageFault if this server offers no passkeys */
  async #challenge(model: OneTimeModel, request: Request, state: Challenged): Promise<string> {
    this.requireOffered();
    const challenge = randomBytes(32).toString('base64url');
    await this.states.put(model, this.#idOf(challenge, request), state, LIFETIMES.passkeyChallenge);
    return challenge;
  }

  /** @returns undefined if the challenge is unknown, used or expired, or belongs to another browser or purpose */
  async #take(
    model: OneTimeModel,
    credential: { readonly response: { readonly clientDataJSON: string } } | undefined,
    request: Request,
    of: string,
  ): Promise<(Challenged & { readonly challenge: string }) | undefined> {
    const clientData = Buffer.from(credential?.response.clientDataJSON ?? '', 'base64url').toString();
    const said = parsed(CLIENT_DATA, clientData);
    if (!said) return undefined;
    const { challenge } = said;
    const state = await this.states.take<Challenged>(model, this.#idOf(challenge, request));
    return state?.of === of ? { ...state, challenge } : undefined;
  }

  #idOf(challenge: string, request: Request): string {
    return `${challenge}-${this.csrf.browserOf(request)!}`;
  }
}

/** @returns undefined if the text is not JSON that matches the schema */
function parsed<Schema extends z.ZodType>(schema: Schema, text: unknown): z.output<Schema> | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
