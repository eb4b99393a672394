import type { Client, KoaContextWithOIDC } from 'oidc-provider';
import type { OauthDatabase } from '../requests/oauth-database.js';
import { hostOf, pageClientOf } from '../ports/page-client.js';
import { PageFault } from '../failures/page-fault.js';
import type { ShownPage } from '../ports/shown-pages.js';
import type { Consents } from '../requests/consents.js';
import { ROUTES } from '../provider/provider.js';

/** What an app is told where the platform's own login sent the member back without signing them in. */
export const NOT_SIGNED_IN = 'the member did not sign in';

/**
 * Leads nobody away to an app that they do not know. Anybody can register one of a member's, or describe one in a document, and every
 * request that fails and every sign-out would make this server redirect there (RFC 9700 §4.11.2). Where the browser's member has not
 * consented to such an app, and did not answer on our page just now, they get a page with a link.
 */
export function stayWithStrangers(
  database: OauthDatabase,
  consents: Consents,
  issuer: string,
  show: (ctx: KoaContextWithOIDC, page: ShownPage) => void,
): (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void> {
  return async (ctx, next) => {
    await next();
    const { client, session } = ctx.oidc ?? {};
    const href = ctx.response.get('Location');
    if (ctx.status !== 303 || !client || isOfPlatform(client) || href.startsWith(`${issuer}/`)) return;
    const target = URL.parse(href);
    if (!target || (isAnswered(ctx) && target.searchParams.get('error_description') !== NOT_SIGNED_IN))
      return;
    const member = session?.accountId;
    if (member !== undefined && (await consents.find(Number(member), client.clientId))) return;
    ctx.remove('Location');
    if (ctx.path.startsWith(ROUTES.end_session)) {
      ctx.status = 200;
      show(ctx, { name: 'signed-out', client: pageClientOf(client, href), back: href });
    } else {
      const next = { text: 'toApp', href, host: hostOf(href) } as const;
      const code = target.searchParams.get('error') ?? undefined;
      const fault = new PageFault(400, 'strangeApp', code, { next });
      const detail = target.searchParams.get('error_description') ?? undefined;
      ctx.status = fault.status;
      show(ctx, { ...fault.page(database.current!.id), ...(detail === undefined ? {} : { detail }) });
    }
  };
}

/** Registered by an admin. */
function isOfPlatform(client: Client): boolean {
  return client.by_member !== true && client.has_document !== true;
}

/** Whether the member has just answered on our page, which says which app it is. */
function isAnswered({ path }: KoaContextWithOIDC): boolean {
  return path.startsWith(`${ROUTES.authorization}/`);
}
