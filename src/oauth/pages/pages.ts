import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Eta } from 'eta';
import type { Response } from 'express';
import { browserOf } from './user-agent.js';
import { clip, initialOf, timestampOf, waitOf } from './wording.js';
import { Config } from '../../config/config.js';
import { sha256 } from '../../crypto/digests.js';

/** A client as members see it. All of it is the client's own claim but the host, which was registered. */
export interface PageClient {
  readonly name: string;
  /** Host of the redirect URI; the scheme of an app's own. */
  readonly host: string;
  /** An app on the member's device: another app can claim its redirect URI (RFC 8252 §8.6), so consent warns. */
  readonly native?: boolean;
}

export interface PageUser {
  readonly username: string;
  readonly display_name: string;
}

/** What a page shows. Every text may come from a stranger; moments are in the API's form. */
export type Page =
  | {
      readonly name: 'sign-in';
      readonly action: string;
      readonly csrf: string;
      /** null: the member signs in for the account pages. */
      readonly client: PageClient | null;
      readonly username?: string;
      readonly fault?:
        { reason: 'invalid' } | { reason: 'throttled'; retryAfterSeconds: number } | { reason: 'busy' };
      /** Action of the form that leads back to the client. */
      readonly cancel?: string;
    }
  | {
      readonly name: 'consent';
      readonly action: string;
      readonly csrf: string;
      readonly client: PageClient;
      readonly user: PageUser;
      /** `required` ones are shown, but cannot be unticked and are not sent. */
      readonly scopes: readonly { name: string; meaning: string; checked: boolean; required: boolean }[];
      /** The client was allowed something before. */
      readonly again: boolean;
      /** Action of the form that lets somebody else sign in. */
      readonly switch_user?: string;
    }
  | {
      readonly name: 'sign-out';
      readonly action: string;
      readonly hidden: Readonly<Record<string, string>>;
      readonly client: PageClient | null;
      readonly user: PageUser | null;
    }
  | { readonly name: 'signed-out'; readonly client: PageClient | null }
  | {
      readonly name: 'error';
      readonly title: string;
      readonly message: string;
      readonly error_id: string;
      /** For developers: the code of the RFC. */
      readonly code?: string;
      /** For developers: the parameter whose value is not registered, as it was sent. */
      readonly unregistered?: { readonly name: string; readonly value: string } | undefined;
    }
  | {
      readonly name: 'apps';
      readonly csrf: string;
      readonly user: PageUser;
      readonly apps: readonly {
        readonly action: string;
        readonly client: PageClient;
        readonly scopes: readonly { name: string; meaning: string }[];
        readonly since: string;
        readonly last_used_at: string | null;
      }[];
      /** How many others there are. */
      readonly more?: number;
    }
  | {
      readonly name: 'sessions';
      readonly csrf: string;
      readonly user: PageUser;
      readonly sessions: readonly {
        readonly action: string;
        readonly signed_in_at: string;
        readonly last_seen_at: string;
        readonly ip: string | null;
        readonly user_agent: string | null;
        readonly current: boolean;
      }[];
      /** How many others there are, seen longer ago. */
      readonly more?: number;
      /** Action of the form that ends every session but this one. */
      readonly end_others?: string;
    };

/** Of every answer that is no page: redirects, JSON. {@link Pages.render} has its own. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
};

const TEMPLATES = fileURLToPath(new URL('./templates/', import.meta.url));

/** Makes the HTML of every page: no script, nothing loaded from anywhere, one style sheet inside. */
@Injectable()
export class Pages {
  readonly #eta = new Eta({ views: TEMPLATES, autoEscape: true, cache: true });
  readonly #style = readFileSync(new URL('./templates/style.css', import.meta.url), 'utf8');
  readonly #styleSource = `'sha256-${sha256(this.#style, 'base64')}'`;

  constructor(private readonly config: Config) {}

  /** Answers with a page; see {@link render}. */
  send(response: Response, status: number, page: Page, formTargets: readonly string[] = []): void {
    const { html, headers } = this.render(page, formTargets);
    response
      .status(status)
      .set(headers)
      .end(response.req.method === 'HEAD' ? undefined : html);
  }

  /** @param formTargets origins and schemes that redirects after the page's forms may lead to: browsers check those too */
  render(page: Page, formTargets: readonly string[] = []): { html: string; headers: Record<string, string> } {
    const html = this.#eta.render(`./${page.name}`, {
      page,
      style: this.#style,
      support: this.config.supportUrl,
      ...WORDING,
    });
    const policy = [
      "default-src 'none'",
      `style-src ${this.#styleSource}`,
      ['form-action', "'self'", ...formTargets.flatMap(formSource)].join(' '),
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ];
    return {
      html,
      headers: {
        ...SECURITY_HEADERS,
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': policy.join('; '),
      },
    };
  }
}

/** To the page that shows what a form has done: loading that one anew sends nothing again. */
export function redirect(response: Response, location: string): void {
  response.status(303).set('Location', location).end();
}

/** What the templates call. */
const WORDING = { browserOf, clip, initialOf, timestampOf, waitOf };

/** An origin, or a private-use scheme, as CSP writes it; anything else could widen the policy and is left out. */
function formSource(target: string): string[] {
  if (/^[a-z][a-z0-9+.-]*:$/.test(target))
    return /^(https?|javascript|data|blob|file|about):$/.test(target) ? [] : [target];
  if (!/^https?:\/\/[a-z0-9.\-[\]:]+$/.test(target) || !URL.canParse(target)) return [];
  // CSP cannot name an IPv6 address, such as the loopback of a native app: its port is the closest.
  return [target.replace(/\[.*\]/, '*')];
}
