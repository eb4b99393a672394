import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Eta } from 'eta';
import type { Response } from 'express';
import type { PasswordFault } from '../../accounts/password-rules.js';
import { Config } from '../../config/config.js';
import { sha256 } from '../../crypto/digests.js';
import { mixed, readableOn } from '../../values/colors.js';
import type { KeyEnvironment } from '../../auth/api-keys/api-key-format.js';
import type { KeyDetails } from '../../auth/api-keys/api-keys.service.js';
import type { ShownRequest } from '../../auth/usage/developer-requests.js';
import type { Scope } from '../../auth/scopes.js';
import type { Activity } from '../admin/activity.js';
import type { ClientFault } from '../admin/client-rules.js';
import { Moments } from './moments.js';
import { RESET_PATH, resetsPasswords } from './page-paths.js';
import { PlatformLogo } from './platform-logo.js';
import type { FaultName, Texts } from './texts/en.js';
import { LANGUAGES, languageOf, TEXTS } from './texts/texts.js';
import type { Language } from './texts/texts.js';
import { browserOf } from './user-agent.js';
import { clip, escapeHtml, fill, fillHtml, initialOf, isolated, sentence } from './wording.js';

/** A client as members see it. All of it is the client's own claim, except the host, which was registered. */
export interface PageClient {
  readonly name: string;
  /** Host of the redirect URI; the scheme of an app's own. */
  readonly host: string;
  /** An app on the member's device: another app can claim its redirect URI (RFC 8252 §8.6), so consent warns. */
  readonly native?: boolean;
  /** A member registered it, and not the platform: consent says so. */
  readonly byMember?: boolean;
  /** Path of its image, which is served from here. */
  readonly logo?: string;
  /** Its own page. */
  readonly homepage?: string;
  /** What it does with members' data. */
  readonly policy?: string;
}

export interface PageUser {
  readonly username: string;
  readonly display_name: string;
}

/** Addresses of a form in which a passkey is sent: what the script asks for first, and its action. */
export interface PasskeyForm {
  readonly options: string;
  readonly action: string;
}

/** What an action of a member has done. */
export type Done = keyof Texts['done'];

/** A member's calendar links. */
export interface CalendarPage {
  readonly name: 'calendar';
  readonly csrf: string;
  readonly user: PageUser;
  readonly done?: Done | undefined;
  /** Action of the form that makes a link. */
  readonly create: string;
  /** Code points of a link's name. */
  readonly longest: number;
  /** So many links may a member have. */
  readonly most: number;
  readonly links: readonly {
    readonly name: string;
    readonly created_at: string;
    readonly last_used_at: string | null;
    /** Action of the form that revokes it. */
    readonly revoke: string;
  }[];
  /** What was just made, which is shown this once. */
  readonly made?: { readonly name: string; readonly url: string };
  /** Why nothing was made. */
  readonly fault?: 'name' | 'limit';
}

/** What a page shows. Every text may come from a stranger; moments are in the API's form. */
export type Page =
  | {
      readonly name: 'sign-in';
      readonly action: string;
      readonly csrf: string;
      /** null: the member signs in for the account pages. */
      readonly client: PageClient | null;
      /** What they sign in for, where it is no app and not the account. */
      readonly lead?: 'toDeveloper' | 'again';
      readonly username?: string;
      readonly fault?:
        | { reason: 'invalid' }
        | { reason: 'throttled'; retryAfterSeconds: number }
        | { reason: 'busy' }
        | { reason: 'unproven' };
      /** Action of the form that leads back to the client. */
      readonly cancel?: string;
      /** Where the platform's own login begins, where there is one. */
      readonly upstream?: { readonly href: string; readonly label: string };
      /** Where a passkey signs in, where there are any; `only`: the app asks for one, and a password will not do. */
      readonly passkey?: PasskeyForm & { readonly only: boolean };
    }
  | {
      readonly name: 'consent';
      readonly action: string;
      readonly csrf: string;
      readonly client: PageClient;
      readonly user: PageUser;
      /** `required` ones are shown, but cannot be unticked and are not sent; `writes`: it lets the app change something. */
      readonly scopes: readonly {
        name: ScopeName;
        checked: boolean;
        required: boolean;
        writes: boolean;
      }[];
      /** The client was allowed something before. */
      readonly again: boolean;
      /** How long the access lasts: since the sign-in, and without use. */
      readonly days: { readonly most: number; readonly idle: number };
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
  | {
      /** A new password by mail, step by step. */
      readonly name: 'password-reset';
      readonly csrf: string;
      readonly step: 'ask' | 'sent' | 'choose' | 'expired' | 'done';
      /** Of the form; of the link to begin anew. */
      readonly action: string;
      readonly username?: string;
      readonly fault?: PasswordFault;
      /** Of `done`: what the member can still sign in with beside the new password. */
      readonly passkeys?: readonly {
        readonly name: string;
        readonly created_at: string;
        readonly last_used_at: string | null;
      }[];
    }
  | { readonly name: 'signed-out'; readonly client: PageClient | null }
  | {
      readonly name: 'error';
      readonly fault: FaultName;
      readonly error_id: string;
      /** What the platform's own login is called, which the fault is about. */
      readonly login?: string;
      /** What the member can do next. */
      readonly next?: { readonly text: keyof Texts['error']['next']; readonly href: string };
      /** Of `tooMany`. */
      readonly retryAfterSeconds?: number;
      /** For developers: the code of the RFC. */
      readonly code?: string;
      /** For developers: what is wrong, in English. */
      readonly detail?: string;
      /** For developers: the parameter whose value is not registered, as it was sent, and what is registered. */
      readonly unregistered?:
        { readonly name: string; readonly value: string; readonly registered: readonly string[] } | undefined;
    }
  | {
      readonly name: 'apps';
      readonly csrf: string;
      readonly user: PageUser;
      /** What the member has just done. */
      readonly done?: Done | undefined;
      readonly done_count?: number;
      /** Action of the forms that revoke the access of an app. */
      readonly revoke: string;
      readonly apps: readonly {
        readonly client_id: string;
        readonly client: PageClient;
        readonly scopes: readonly ScopeName[];
        readonly since: string;
        readonly last_used_at: string | null;
      }[];
      /** How many others there are. */
      readonly more?: number;
    }
  | CalendarPage
  | {
      readonly name: 'data';
      readonly csrf: string;
      readonly user: PageUser;
      /** Action of the form whose answer is the file. */
      readonly download: string;
    }
  | {
      readonly name: 'keys';
      readonly csrf: string;
      readonly user: PageUser;
      readonly done?: Done | undefined;
      readonly keys: readonly {
        readonly name: string;
        /** What the key begins with, as it stands wherever it is used. */
        readonly prefix: string;
        readonly scopes: readonly ScopeName[];
        readonly created_at: string;
        readonly last_used_at: string | null;
        /** null: never. */
        readonly expires_at: string | null;
        /** Action of the form that revokes it. */
        readonly revoke: string;
      }[];
      /** How many others there are, made longer ago. */
      readonly more?: number;
    }
  | ({ readonly name: 'activity'; readonly csrf: string; readonly user: PageUser } & Activity)
  | {
      readonly name: 'sessions';
      readonly csrf: string;
      readonly user: PageUser;
      readonly done?: Done | undefined;
      readonly done_count?: number;
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
    }
  | {
      readonly name: 'security';
      readonly csrf: string;
      readonly user: PageUser;
      readonly done?: Done | undefined;
      readonly done_count?: number;
      /** What could not be done. */
      readonly fault?: keyof Texts['security']['faults'] | undefined;
      /** Where the member proves again who they are, where that is too long ago for a change; there are no forms then. */
      readonly confirm?: string | undefined;
      /** undefined where there are no passkeys on this server. */
      readonly passkeys?:
        | {
            readonly add: PasskeyForm;
            /** What a new one is called, unless the member says otherwise. */
            readonly suggested: string;
            readonly items: readonly {
              readonly name: string;
              readonly created_at: string;
              readonly last_used_at: string | null;
              readonly synced: boolean;
              /** Action of the form that removes it; undefined for the last way in. */
              readonly remove?: string | undefined;
            }[];
            /** There is no room for another one. */
            readonly full: boolean;
          }
        | undefined;
      readonly password: 'none' | 'on' | 'off';
      /** Action of the form that changes it. */
      readonly change_password: string;
      /** Of `throttled`. */
      readonly retryAfterSeconds?: number | undefined;
      /** Action of the form that switches the password off, or on; undefined where it would be the last way in. */
      readonly switch_password?: string | undefined;
    }
  | ({ readonly name: 'developer'; readonly done?: Done | undefined } & Developer & {
        readonly clients: readonly (DeveloperClient & { readonly host: string })[];
        /** The newest first; those that ended a moment ago, too. */
        readonly keys: readonly {
          readonly id: string;
          readonly name: string;
          readonly environment: KeyEnvironment;
          readonly last_four: string;
          readonly scopes: readonly string[];
          readonly status: KeyDetails['status'];
          readonly accepted: boolean;
          readonly ends_at: string;
          readonly last_used_at: string | null;
        }[];
        /** How many of each there may be. */
        readonly most: { readonly clients: number; readonly keys: number };
      })
  | ({ readonly name: 'developer-client'; readonly done?: Done | undefined } & Developer & {
        /** null: it is not registered yet. */
        readonly client: (DeveloperClient & { readonly has_keys: boolean }) | null;
        readonly values: ClientForm;
        readonly scopes: readonly Scope[];
        readonly fault?: ClientFault | undefined;
      })
  | ({ readonly name: 'developer-key' } & Developer & {
        readonly values: { readonly name: string; readonly scopes: readonly string[]; readonly days: number };
        readonly scopes: readonly Scope[];
        /** For how long a key may last: those that there are words for. */
        readonly days: readonly number[];
        readonly fault?: 'bad' | 'full' | undefined;
        readonly most: number;
      })
  | ({ readonly name: 'developer-made-key' } & Developer & {
        /** Shown this once. */
        readonly key: string;
        /** Address of a call to try it with. */
        readonly try: string;
      })
  | ({ readonly name: 'developer-requests' } & Developer & {
        /** Of which app or key alone. */
        readonly of: string | null;
        readonly apps: readonly { readonly id: string; readonly name: string }[];
        /** The latest first. */
        readonly requests: readonly ShownRequest[];
        readonly most: number;
      });

interface Developer {
  readonly csrf: string;
  readonly user: PageUser;
}

/** An app as its developer sees it. */
export interface DeveloperClient {
  readonly client_id: string;
  readonly name: string;
  readonly type: 'web' | 'native';
  readonly state: keyof Texts['developer']['state'];
  /** Path of its image. */
  readonly logo?: string | undefined;
}

/** What stands in the fields of an app's form: of what there is several of, one a line. */
export interface ClientForm {
  readonly name: string;
  readonly type: 'web' | 'native';
  readonly redirect_uris: string;
  readonly allowed_origins: string;
  readonly post_logout_redirect_uris: string;
  readonly scopes: readonly string[];
  readonly jwks: string;
  readonly client_uri: string;
  readonly policy_uri: string;
}

/** A scope that members are told about. */
export type ScopeName = keyof Texts['scopes'];

/** How a page is sent. */
export interface Sending {
  /** Origins and schemes that redirects after the page's forms may lead to: browsers check those too. */
  readonly formTargets?: readonly string[];
  /** Languages that the app asked for (`ui_locales`). */
  readonly uiLocales?: unknown;
}

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

/**
 * Makes the HTML of every page: nothing loaded from elsewhere, one style sheet inside, in the member's language. A script is on few of them, inside
 * and allowed by its hash alone; everything works without it.
 */
@Injectable()
export class Pages {
  readonly #eta = new Eta({ views: TEMPLATES, autoEscape: true, cache: true });
  readonly #style: string;
  readonly #styleSource: string;
  readonly #scripts = {
    passkeys: readFileSync(new URL('./templates/passkeys.js', import.meta.url), 'utf8'),
    developer: readFileSync(new URL('./templates/developer.js', import.meta.url), 'utf8'),
  };
  readonly #scriptSources = Object.values(this.#scripts).map((script) => [script, sourceOf(script)] as const);
  readonly #moments = Object.fromEntries(
    LANGUAGES.map((language) => [language, new Moments(language)]),
  ) as Record<Language, Moments>;

  constructor(
    private readonly config: Config,
    private readonly logo: PlatformLogo,
  ) {
    const style = readFileSync(new URL('./templates/style.css', import.meta.url), 'utf8');
    this.#style = style + (config.platformColor === undefined ? '' : paletteOf(config.platformColor));
    this.#styleSource = sourceOf(this.#style);
  }

  /** Answers with a page; see {@link render}. */
  send(response: Response, status: number, page: Page, sending: Sending = {}): void {
    const language = languageOf(sending.uiLocales, response.req.headers['accept-language']);
    const { html, headers } = this.render(page, language, sending.formTargets);
    response
      .status(status)
      .set(headers)
      .end(response.req.method === 'HEAD' ? undefined : html);
  }

  /** @param formTargets see {@link Sending} */
  render(
    page: Page,
    language: Language,
    formTargets: readonly string[] = [],
  ): { html: string; headers: Record<string, string> } {
    const { config } = this;
    const platform = {
      name: config.platformName,
      logo: this.logo.image === undefined ? undefined : PLATFORM_LOGO_PATH,
      support: config.supportUrl,
      privacy: config.privacyUrl,
      signUp: config.signUpUrl,
      passwordReset: config.passwordResetUrl ?? (resetsPasswords(config) ? RESET_PATH : undefined),
      hasPasswords: config.localSignIn,
      developerConsole: config.developerConsole,
    };
    const html = this.#eta.render(`./${page.name}`, {
      page,
      language,
      t: TEXTS[language],
      style: this.#style,
      scripts: this.#scripts,
      platform,
      moments: this.#moments[language],
      ...WORDING,
    });
    const scripts = this.#scriptSources.filter(([script]) => html.includes(script));
    const policy = [
      "default-src 'none'",
      `style-src ${this.#styleSource}`,
      ...(scripts.length > 0
        ? [['script-src', ...scripts.map(([, source]) => source)].join(' '), "connect-src 'self'"]
        : []),
      ...(html.includes('<img ') ? ["img-src 'self'"] : []),
      ['form-action', "'self'", ...formTargets.flatMap(formSource)].join(' '),
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ];
    return {
      html,
      headers: {
        ...SECURITY_HEADERS,
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Language': language,
        Vary: 'Accept-Language',
        'Content-Security-Policy': policy.join('; '),
      },
    };
  }
}

/** Where the platform's logo is served. */
export const PLATFORM_LOGO_PATH = '/logos/platform';

/** Redirects to the page that shows what a form has done, so that reloading it sends nothing again. */
export function redirect(response: Response, location: string): void {
  response.status(303).set('Location', location).end();
}

/** Functions for the templates. */
const WORDING = { browserOf, clip, escapeHtml, fill, fillHtml, initialOf, isolated, sentence };

/** The background colours of the style sheet, by their names there. */
const [PAGE, DARK_CARD] = ['#f2f4f8', '#171b23'];

/** The platform's colour in place of the style sheet's own, as light and dark as can be read where it stands (WCAG 2.2, 1.4.3). */
export function paletteOf(color: string): string {
  const light = readableOn(color, PAGE, 4.5);
  const dark = readableOn(color, DARK_CARD, 6);
  const variables = (accent: string, strong: string, on: string, tint: string) =>
    `--accent:${accent};--accent-strong:${strong};--on-accent:${on};--tint:${tint}`;
  return (
    `\n:root{${variables(light, mixed(light, '#000000', 0.2), '#ffffff', mixed(light, '#ffffff', 0.9))}}` +
    `\n@media (prefers-color-scheme: dark){:root{${variables(dark, mixed(dark, '#ffffff', 0.3), '#0b0f19', mixed(color, DARK_CARD, 0.8))}}}\n`
  );
}

/** As a Content-Security-Policy names what stands inside a page. */
function sourceOf(text: string): string {
  return `'sha256-${sha256(text, 'base64')}'`;
}

/** An origin, or a private-use scheme, as CSP writes it; anything else could widen the policy and is left out. */
function formSource(target: string): string[] {
  if (/^[a-z][a-z0-9+.-]*:$/.test(target))
    return /^(https?|javascript|data|blob|file|about):$/.test(target) ? [] : [target];
  if (!/^https?:\/\/[a-z0-9.\-[\]:]+$/.test(target) || !URL.canParse(target)) return [];
  // CSP cannot name an IPv6 address, such as the loopback of a native app: its port is the closest.
  return [target.replace(/\[.*\]/, '*')];
}
