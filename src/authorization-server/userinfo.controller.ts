import { All, Controller, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { Authentication } from '../auth/authentication.js';
import { missingCredentials, rejection } from '../auth/www-authenticate.js';
import { credentialOf, type Credential, type Principal } from '../auth/principal.js';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { Usage } from '../auth/usage/usage.js';
import { Database } from '../database/database.js';
import { addressOf } from '../values/network.js';
import { readBytes } from '../http/input/body.js';
import { methodNotAllowed, Problem } from '../http/output/problems.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { ROUTES } from './provider/provider.js';
import { Config } from '../config/config.js';

/** SQL: a member's claims (OpenID Connect Core §5.1), from `users u`, for ID tokens and userinfo. */
export const CLAIMS =
  'u.id::text AS sub, u.username AS preferred_username, u.display_name AS name, u.profile_picture AS picture';

export type Claims = Record<'sub' | 'preferred_username' | 'name' | 'picture', string | null>;

/** Omits claims without a value: they should not be null (OpenID Connect Core §5.3.2). */
export function presentClaims(claims: Claims): Partial<Claims> {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null));
}

const METHODS = ['GET', 'HEAD', 'POST'];

/** Finds an access token in a POST form (RFC 6750 §2.2). */
async function credentialInForm(request: Request, response: Response): Promise<Credential | undefined> {
  if (request.method !== 'POST' || !request.is('application/x-www-form-urlencoded')) return undefined;
  const form = new URLSearchParams((await readBytes(request, response)).toString());
  const [secret, another] = form.getAll('access_token');
  if (another !== undefined) throw new Problem('ambiguous_credentials');
  return secret ? { kind: 'oauth_token', scheme: 'Bearer', secret } : undefined;
}

/** $1: the grant's id; $2: whether the token has `profile:read`. Reads OpenID scopes from the grant. */
const FIND_CLAIMS = {
  name: 'find-userinfo',
  text: `SELECT ${CLAIMS}, $2 OR 'profile' = ANY (string_to_array(g.payload->'openid'->>'scope', ' ')) AS with_profile
FROM oauth_grants g JOIN users u ON u.id = g.user_id WHERE g.id = $1`,
};

/** Userinfo (OpenID Connect Core §5.3), also for OAuth 2.0 clients without `openid`. Requests count toward the API's read limit. */
@Controller(ROUTES.userinfo)
@Public()
@OutsideApi()
export class UserinfoController {
  constructor(
    private readonly config: Config,
    private readonly authentication: Authentication,
    private readonly database: Database,
    private readonly rateLimits: RateLimits,
    private readonly usage: Usage,
  ) {}

  @All()
  async read(@Req() request: Request, @Res() response: Response): Promise<void> {
    response.setHeader('Cache-Control', 'no-store');
    if (!METHODS.includes(request.method)) throw methodNotAllowed([...METHODS, 'OPTIONS']);
    const [credential, other] = [credentialOf(request), await credentialInForm(request, response)].filter(
      (sent) => sent !== undefined,
    );
    if (other) throw new Problem('ambiguous_credentials');
    if (!credential) throw missingCredentials(this.config.publicUrl, request);
    this.usage.watch(request, 'openid');
    request.limit = 'read'; // also a POST, since it changes nothing
    const principal = await this.#authenticate(credential, request).catch((error: unknown) => {
      throw this.rateLimits.afterRefusal(error, credential, addressOf(request));
    });
    request.principal = principal;
    request.context.userId = principal.userId;
    const overLimit = this.rateLimits.countCall(request.limit, principal, response);
    request.overLimit ??= overLimit;
    if (request.overLimit) throw request.overLimit;
    const readsProfile = principal.scopes.includes('profile:read');
    if (readsProfile) request.scope = 'profile:read';
    const values = [principal.credentialId, readsProfile];
    const [found] = await this.database.read<Claims & { with_profile: boolean | null }>(FIND_CLAIMS, values);
    if (!found) throw rejection(this.config.publicUrl, credential, request, 'the grant was revoked');
    const { with_profile, ...claims } = found;
    response.json(with_profile ? presentClaims(claims) : { sub: claims.sub });
  }

  async #authenticate(credential: Credential, request: Request): Promise<Principal> {
    if (credential.kind === 'api_key')
      throw rejection(this.config.publicUrl, credential, request, 'not a token');
    return (await this.authentication.authenticate(credential, request)) as Principal; // an OAuth token always belongs to a member
  }
}
