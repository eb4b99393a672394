import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Account, Adapter, KoaContextWithOIDC, Provider } from 'oidc-provider';
import { isUnavailable } from '../database/postgres/unavailable.js';
import { Periodic } from '../runtime/periodic-work.js';
import { Logger } from '../runtime/logger.js';
import { sessionAdapter } from './adapters/session.adapter.js';
import { replayAdapter, stateAdapter } from './adapters/state.adapter.js';
import { grantAdapter, tokenAdapter } from './adapters/token.adapter.js';
import { Consents } from './requests/consents.js';
import { Middleware } from './middleware.js';
import { ClientCache } from './adapters/client-cache.js';
import { ClientSecrets } from './adapters/client-secrets.js';
import { OauthDatabase } from './requests/oauth-database.js';
import { TokenExchange } from './requests/token-exchange.js';
import { alive } from './provider/library.js';
import { createProvider } from './provider/provider.js';
import { CLAIMS, presentClaims, type Claims } from './userinfo.controller.js';
import { SigningKeysService } from '../clients/signing-keys.service.js';
import { Config } from '../config/config.js';

/** Embeds oidc-provider, and rebuilds it when the signing keys change. */
@Injectable()
export class AuthorizationServer implements OnModuleInit {
  provider: Provider;
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  #keysVersion = '';

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly database: OauthDatabase,
    private readonly clients: ClientCache,
    private readonly secrets: ClientSecrets,
    private readonly consents: Consents,
    private readonly middleware: Middleware,
    private readonly keys: SigningKeysService,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.keys.moveToCurrentSecret().catch((error: unknown) => {
      if (!isUnavailable(error)) throw error;
      // The keys remain readable with SECRET_KEY_PREVIOUS.
      this.logger.warn(
        { reason: (error as Error).message },
        'signing keys could not be moved to SECRET_KEY: the next start tries again',
      );
    });
    await this.#build();
  }

  /** Rebuilds the provider if the signing keys have changed; not if all were deleted: the next start creates new keys. */
  @Periodic({
    work: 'signing_keys',
    everyMs: 1_000,
    failure: 'the signing keys could not be checked',
    waits: true,
  })
  async checkKeys(): Promise<void> {
    const version = await this.keys.version();
    if (version !== '' && version !== this.#keysVersion) await this.#build();
  }

  /** The library reads the signing keys only once. Requests in progress finish on the previous provider. */
  async #build(): Promise<void> {
    const signingKeys = await this.keys.load();
    this.#keysVersion = await this.keys.version();
    const { config, database, clients, logger, middleware } = this;
    const provider = createProvider({
      config,
      logger,
      database,
      signingKeys,
      adapter: adapterFactory(database, clients, new Set(signingKeys.map(({ alg }) => alg))),
      findAccount: (ctx, sub) => this.#findAccount(ctx, sub),
      hasSecret: (client, sent) => this.secrets.matches(client, sent),
      postForm: (ctx, action, fields) => middleware.postForm(ctx, action, fields),
      loadExistingGrant: (ctx) => this.consents.loadExistingGrant(ctx),
      renderError: (ctx, _out, error) => middleware.renderError(ctx, error),
      renderSignOut: (ctx) => middleware.renderSignOut(ctx),
      renderSignedOut: (ctx) => middleware.show(ctx, { name: 'signed-out', client: null }),
    });
    middleware.addTo(provider);
    this.provider = provider;
    this.handle = provider.callback();
  }

  async #findAccount(ctx: KoaContextWithOIDC, sub: string): Promise<Account | undefined> {
    if (!/^[1-9]\d{0,15}$/.test(sub)) return undefined;
    const userId = Number(sub);
    if (!(await this.#canSignIn(ctx, userId))) return undefined;
    return {
      accountId: sub,
      claims: async (_use, scope) => {
        // The library omits claims whose scopes were not granted.
        const wanted = scope.split(' ').includes('profile');
        const [claims] = wanted ? await this.database.read<Claims>(FIND_CLAIMS, [userId]) : [];
        return { ...(claims && presentClaims(claims)), sub };
      },
    };
  }

  async #canSignIn(ctx: KoaContextWithOIDC, userId: number): Promise<boolean> {
    const token = TokenExchange.of(ctx)?.token;
    if (token?.user_id === userId) return token.user_active;
    const { member } = this.database.current?.signIn ?? {};
    if (member?.userId === userId) return member.active;
    return (await this.database.read(FIND_ACCOUNT, [userId])).length > 0;
  }
}

const FIND_ACCOUNT = {
  name: 'find-account',
  text: 'SELECT FROM users WHERE id = $1 AND disabled_at IS NULL',
};
const FIND_CLAIMS = { name: 'find-claims', text: `SELECT ${CLAIMS} FROM users u WHERE u.id = $1` };

/** Makes the function that returns the adapter of an oidc-provider model. @param algorithms of the loaded keys */
export function adapterFactory(
  database: OauthDatabase,
  clients: ClientCache,
  algorithms: ReadonlySet<string>,
): (model: string) => Adapter {
  const adapters: Readonly<Record<string, Partial<Adapter>>> = {
    Client: { find: (id) => clients.find(id, algorithms) },
    Grant: alive(grantAdapter(database)),
    Session: alive(sessionAdapter(database)),
    AuthorizationCode: alive(tokenAdapter(database, 'AuthorizationCode')),
    AccessToken: alive(tokenAdapter(database, 'AccessToken')),
    RefreshToken: alive(tokenAdapter(database, 'RefreshToken')),
    Interaction: alive(stateAdapter(database, 'Interaction')),
    PushedAuthorizationRequest: alive(stateAdapter(database, 'PushedAuthorizationRequest')),
    ReplayDetection: replayAdapter(database),
  };
  return (model) => adapters[model] as Adapter;
}
