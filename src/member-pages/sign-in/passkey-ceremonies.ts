import { Injectable } from '@nestjs/common';
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Request } from 'express';
import { z } from 'zod';
import { Csrf } from '../../accounts/browser-cookies.js';
import { passkeyDomain, Passkeys } from '../../accounts/sign-in/passkeys.js';
import type { SignedIn } from '../../accounts/sign-in/sign-in.js';
import { SignInMethods, type SignedInMember } from '../../accounts/sign-in/sign-in-methods.js';
import { Config } from '../../config/config.js';
import { randomBytes } from '../../crypto/random.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { LIFETIMES } from '../../authorization-server/provider/lifetimes.js';
import { OneTimeStates, type OneTimeModel } from '../../authorization-server/requests/one-time-states.js';
import type { SignedInUser } from './browser-sessions.js';

/** What a challenge was issued for: a response to it is valid for nothing else. */
interface CeremonyPurpose {
  /** The browser that requested it ({@link Csrf.browserOf}). */
  readonly browser: string;
  /** The step of an app's request, the account page, or the session in which a passkey is added. */
  readonly of: string;
}

interface Registration {
  readonly of: string;
  /** base64url */
  readonly handle: string;
}

/** EdDSA, ES256 and RS256 (RFC 9053 §2, RFC 8812 §2). */
const ALGORITHMS = [-8, -7, -257];

const bytes = (most: number) =>
  z
    .string()
    .max(most)
    .regex(/^[\w-]+$/);

/** A credential as the pages' script sends it (WebAuthn level 3, §5.1); anything else in it is dropped. */
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

/**
 * WebAuthn ceremonies (level 3, §7): issues challenges, each single-use and bound to a browser and a purpose, and verifies the
 * responses.
 */
@Injectable()
export class PasskeyCeremonies {
  readonly #domain: string | undefined;

  constructor(
    private readonly config: Config,
    private readonly passkeys: Passkeys,
    private readonly states: OneTimeStates,
    private readonly signInMethods: SignInMethods,
    private readonly csrf: Csrf,
  ) {
    this.#domain = passkeyDomain(config);
  }

  /** Whether this server offers passkeys; if not, nothing else here may be called. */
  get areOffered(): boolean {
    return this.#domain !== undefined;
  }

  /**
   * Binds a ceremony to the browser that requests it; its CSRF token must have been checked.
   *
   * @throws PageFault if this server offers no passkeys
   */
  purposeFor(request: Request, of: string): CeremonyPurpose {
    if (!this.areOffered) throw new PageFault(400, 'malformed');
    return { browser: this.csrf.browserOf(request)!, of };
  }

  /** Options for `navigator.credentials.get`. They list no passkeys, so they reveal nothing about members. */
  async signInOptions(purpose: CeremonyPurpose): Promise<PublicKeyCredentialRequestOptionsJSON> {
    const challenge = await this.#challenge('PasskeySignIn', purpose, { of: purpose.of });
    return {
      challenge,
      rpId: this.#domain!,
      timeout: LIFETIMES.passkeyChallenge * 1000,
      userVerification: 'required',
    };
  }

  /**
   * Signs in with a passkey.
   *
   * @param text what the script sent
   * @returns undefined if anything is wrong
   */
  async signIn(
    text: unknown,
    purpose: CeremonyPurpose,
    ip: string | undefined,
  ): Promise<SignedIn | undefined> {
    const credential = parsed(ASSERTION, text);
    const taken = await this.#take<{ of: string }>('PasskeySignIn', credential, purpose);
    if (!credential || !taken) return undefined;
    const passkey = await this.passkeys.find(Buffer.from(credential.id, 'base64url'));
    if (!passkey) return undefined;
    const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
    const proof = await verifyAuthenticationResponse({
      response: { ...credential, rawId: credential.id, clientExtensionResults: {} },
      expectedChallenge: taken.challenge,
      ...this.#expected(),
      // The counter is compared after the proof is verified, when it is stored: here, anybody could pretend that it went back.
      credential: { id: credential.id, publicKey: Uint8Array.from(passkey.public_key), counter: 0 },
    }).catch(() => undefined); // throws for any invalid proof
    const { newCounter, credentialBackedUp, credentialDeviceType } = proof?.authenticationInfo ?? {};
    const isWhole =
      proof?.verified === true &&
      passkey.user_handle.equals(Buffer.from(credential.response.userHandle, 'base64url')) &&
      (credentialDeviceType === 'multiDevice') === passkey.backup_eligible;
    if (!isWhole) {
      await this.passkeys.refuse(passkey, 'wrong_proof', ip);
      return undefined;
    }
    return this.passkeys.use(passkey, { signCount: newCounter!, backedUp: credentialBackedUp! }, ip);
  }

  /** Options for `navigator.credentials.create`. */
  async registrationOptions(
    { id: userId, username, display_name }: SignedInUser,
    purpose: CeremonyPurpose,
  ): Promise<PublicKeyCredentialCreationOptionsJSON> {
    const { platformName } = this.config;
    const { handle = randomBytes(64), credentials } = await this.signInMethods.known(userId);
    const registration: Registration = { of: purpose.of, handle: handle.toString('base64url') };
    const challenge = await this.#challenge('PasskeyRegistration', purpose, registration);
    return {
      challenge,
      rp: { id: this.#domain!, name: platformName ?? this.#domain! },
      user: { id: registration.handle, name: username, displayName: display_name },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ alg, type: 'public-key' })),
      timeout: LIFETIMES.passkeyChallenge * 1000,
      attestation: 'none',
      authenticatorSelection: {
        residentKey: 'required',
        requireResidentKey: true,
        userVerification: 'required',
      },
      excludeCredentials: credentials.map(({ id, transports }) => ({
        id: id.toString('base64url'),
        type: 'public-key',
        transports: transports as AuthenticatorTransport[],
      })),
    };
  }

  /**
   * Adds the passkey that a browser has created.
   *
   * @param text what the script sent
   * @returns false if anything is wrong
   * @throws Unconfirmed
   */
  async register(
    text: unknown,
    name: string,
    by: SignedInMember,
    purpose: CeremonyPurpose,
  ): Promise<boolean> {
    const credential = parsed(ATTESTATION, text);
    const taken = await this.#take<Registration>('PasskeyRegistration', credential, purpose);
    if (!credential || !taken) return false;
    const info = await this.#verifyRegistration(
      { ...credential, rawId: credential.id, clientExtensionResults: {} },
      taken.challenge,
    );
    if (!info) return false;
    return this.signInMethods.addPasskey(by, {
      credentialId: Buffer.from(info.credential.id, 'base64url'),
      userHandle: Buffer.from(taken.state.handle, 'base64url'),
      publicKey: Buffer.from(info.credential.publicKey),
      signCount: info.credential.counter,
      transports: credential.response.transports,
      backupEligible: info.credentialDeviceType === 'multiDevice',
      backedUp: info.credentialBackedUp,
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
      // No attestation was requested. Verifying a certificate would fetch its revocation list from any URL that it names.
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

  async #challenge(model: OneTimeModel, { browser }: CeremonyPurpose, state: object): Promise<string> {
    const challenge = randomBytes(32).toString('base64url');
    await this.states.put(model, `${challenge}-${browser}`, state, LIFETIMES.passkeyChallenge);
    return challenge;
  }

  /** @returns undefined unless this browser got this challenge for this purpose, and it is neither expired nor used */
  async #take<State extends { readonly of: string }>(
    model: OneTimeModel,
    credential: { readonly response: { readonly clientDataJSON: string } } | undefined,
    { browser, of }: CeremonyPurpose,
  ): Promise<{ challenge: string; state: State } | undefined> {
    const clientData = Buffer.from(credential?.response.clientDataJSON ?? '', 'base64url').toString();
    const said = parsed(CLIENT_DATA, clientData);
    if (!said) return undefined;
    const { challenge } = said;
    const state = await this.states.take<State>(model, `${challenge}-${browser}`);
    return state?.of === of ? { challenge, state } : undefined;
  }
}

/** @returns undefined for anything but JSON of this form */
function parsed<Schema extends z.ZodType>(schema: Schema, text: unknown): z.output<Schema> | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
