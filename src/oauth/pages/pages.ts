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
import { LANGUAGES, languageOf, textsIn } from './texts/texts.js';
import type { FaultName, Texts } from './texts/texts.js';
import { newFormId } from './form-ids.js';
import { browserOf } from './user-agent.js';
import { escapeHtml } from '../../values/html.js';
import { clip, fill, fillHtml, initialOf, isolated, sentence } from './wording.js';

/** A client as members see it. All of it is the client's own claim, except for the registered host. */
export interface PageClient {
  readonly name: string;
  /** Host of the redirect URI; the scheme for a native app's own. */
  readonly host: string;
  /** An app on the member's device: another app can claim its redirect URI (RFC 8252 §8.6), so the consent page warns. */
  readonly native?: boolean;
  /** Registered by a member, or by nobody: known by its own document alone. The consent page says so. */
  readonly unreviewed?: 'byMember' | 'byDocument';
  /** Path of its logo, which is served from here. */
  readonly logo?: string;
  /** URL of its home page. */
  readonly homepage?: string;
  /** URL of its privacy policy. */
  readonly policy?: string;
}

export interface PageUser {
  readonly username: string;
  readonly display_name: string;
}

/** URLs of a passkey form: the options that its script fetches first, and its action. */
export interface PasskeyForm {
  readonly options: string;
  readonly action: string;
}

/** A notice of what a member's action has done. */
export type Done = keyof Texts['done'];

/** A member's calendar links. */
export interface CalendarPage {
  readonly name: 'calendar';
  readonly csrf: string;
  readonly user: PageUser;
  readonly done?: Done | undefined;
  /** See {@link DataPage.confirm}. */
  readonly confirm?: string | undefined;
  /** Action of the form that creates a link. */
  readonly create: string;
  /** Maximum length of a link's name, in code points. */
  readonly longest: number;
  /** How many links a member may have. */
  readonly most: number;
  readonly links: readonly {
    readonly name: string;
    readonly created_at: string;
    readonly last_used_at: string | null;
    /** Action of the form that revokes it. */
    readonly revoke: string;
  }[];
  /** The link just created, shown only once. */
  readonly made?: { readonly name: string; readonly url: string } | undefined;
  /** Why no link was created. */
  readonly fault?: 'name' | 'limit';
}

/** Where a member downloads what is held about them. */
export interface DataPage {
  readonly name: 'data';
  readonly csrf: string;
  readonly user: PageUser;
  /** Where the member authenticates again, if the sign-in is too old for the form; the page does not have it then. */
  readonly confirm?: string | undefined;
  /** Action of the form that responds with the file. */
  readonly download: string;
  /** Why the file was not sent. */
  readonly fault?: 'running' | 'full' | undefined;
}

/** What a page shows. All texts may be untrusted; moments are in the API's format. */
export type Page =
  | {
      readonly name: 'sign-in';
      readonly action: string;
      readonly csrf: string;
      /** null if the member signs in for the account pages. */
      readonly client: PageClient | null;
      /** What the member signs in for, if neither an app nor the account. */
      readonly lead?: 'toDeveloper' | 'again';
      readonly username?: string;
      readonly fault?:
        | { reason: 'invalid' }
        | { reason: 'throttled'; retryAfterSeconds: number }
        | { reason: 'busy' }
        | { reason: 'unproven' };
      /** Action of the form that returns to the client. */
      readonly cancel?: string;
      /** Where sign-in through the platform's own login starts, if there is one. */
      readonly upstream?: { readonly href: string; readonly label: string };
      /** For signing in with a passkey, if offered; `only`: the app requires one, and a password is not accepted. */
      readonly passkey?: PasskeyForm & { readonly only: boolean };
    }
  | {
      readonly name: 'consent';
      readonly action: string;
      readonly csrf: string;
      readonly client: PageClient;
      readonly user: PageUser;
      /** `required` scopes are shown, but cannot be unticked and are not sent; `writes`: the app can change something with it. */
      readonly scopes: readonly {
        name: ScopeName;
        checked: boolean;
        required: boolean;
        writes: boolean;
      }[];
      /** The client had consent before. */
      readonly again: boolean;
      /** How long the access lasts: in all since the sign-in, and without use. */
      readonly days: { readonly most: number; readonly idle: number };
      /** Action of the form that lets another member sign in. */
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
      /** A password reset by email, step by step. */
      readonly name: 'password-reset';
      readonly csrf: string;
      readonly step: 'ask' | 'sent' | 'choose' | 'expired' | 'done';
      /** Action of the form, or target of the link to start over. */
      readonly action: string;
      readonly username?: string;
      readonly fault?: PasswordFault;
      /** For `done`: the passkeys that still work besides the new password. */
      readonly passkeys?: readonly {
        readonly name: string;
        readonly created_at: string;
        readonly last_used_at: string | null;
      }[];
    }
  | {
      readonly name: 'signed-out';
      readonly client: PageClient | null;
      /** Where an app wants the member to go that they do not know. */
      readonly back?: string;
    }
  | {
      readonly name: 'error';
      readonly fault: FaultName;
      readonly error_id: string;
      /** The name of the platform's own login, if the fault is about it. */
      readonly login?: string;
      /** What the member can do next. */
      readonly next?: {
        readonly text: keyof Texts['error']['next'];
        readonly href: string;
        /** For `toApp`. */
        readonly host?: string;
      };
      /** For `tooMany`. */
      readonly retryAfterSeconds?: number;
      /** For developers: the RFC's error code. */
      readonly code?: string;
      /** For developers: what is wrong, in English. */
      readonly detail?: string;
      /** For developers: the parameter whose value is not registered, as sent, and the registered values. */
      readonly unregistered?:
        { readonly name: string; readonly value: string; readonly registered: readonly string[] } | undefined;
    }
  | {
      readonly name: 'apps';
      readonly csrf: string;
      readonly user: PageUser;
      /** Notice of what the member has just done. */
      readonly done?: Done | undefined;
      readonly done_count?: number;
      /** Action of the forms that revoke an app's access. */
      readonly revoke: string;
      readonly apps: readonly {
        readonly client_id: string;
        readonly client: PageClient;
        readonly scopes: readonly ScopeName[];
        readonly since: string;
        readonly last_used_at: string | null;
      }[];
      /** How many more there are. */
      readonly more?: number;
    }
  | CalendarPage
  | DataPage
  | {
      readonly name: 'keys';
      readonly csrf: string;
      readonly user: PageUser;
      readonly done?: Done | undefined;
      readonly keys: readonly {
        readonly name: string;
        /** The start of the key, as it appears wherever it is used. */
        readonly prefix: string;
        readonly scopes: readonly ScopeName[];
        readonly created_at: string;
        readonly last_used_at: string | null;
        /** null if it never expires. */
        readonly expires_at: string | null;
        /** Action of the form that revokes it. */
        readonly revoke: string;
      }[];
      /** How many more there are, older than these. */
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
      /** How many more there are, last seen before these. */
      readonly more?: number;
      /** Action of the form that ends every session but this one. */
      readonly end_others?: string;
      /** How much else still has access, which the member can end with them. */
      readonly also?: { readonly apps: number; readonly links: number };
    }
  | {
      readonly name: 'security';
      readonly csrf: string;
      readonly user: PageUser;
      readonly done?: Done | undefined;
      readonly done_count?: number;
      /** Why the change failed. */
      readonly fault?: keyof Texts['security']['faults'] | undefined;
      /** Where the member authenticates again, if the sign-in is too old for a change; the page has no forms then. */
      readonly confirm?: string | undefined;
      /** undefined if this server offers no passkeys. */
      readonly passkeys?:
        | {
            readonly add: PasskeyForm;
            /** The default name of a new one. */
            readonly suggested: string;
            readonly items: readonly {
              readonly name: string;
              readonly created_at: string;
              readonly last_used_at: string | null;
              readonly synced: boolean;
              /** Action of the form that removes it; undefined if it is the last way to sign in. */
              readonly remove?: string | undefined;
            }[];
            /** No further one can be added. */
            readonly full: boolean;
          }
        | undefined;
      readonly password: 'none' | 'on' | 'off';
      /** Action of the form that changes it. */
      readonly change_password: string;
      /** For `throttled`. */
      readonly retryAfterSeconds?: number | undefined;
      /** Action of the form that switches the password off or on; undefined if it is the only way to sign in. */
      readonly switch_password?: string | undefined;
    }
  | ({ readonly name: 'developer'; readonly done?: Done | undefined } & Developer & {
        readonly clients: readonly (DeveloperClient & { readonly host: string })[];
        /** Newest first, including those that ended recently. */
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
        /** The limits per member. */
        readonly most: { readonly clients: number; readonly keys: number };
      })
  | ({ readonly name: 'developer-client'; readonly done?: Done | undefined } & Developer & {
        /** null if it is not registered yet. */
        readonly client: (DeveloperClient & { readonly has_keys: boolean }) | null;
        readonly values: ClientForm;
        readonly scopes: readonly Scope[];
        readonly fault?: ClientFault | undefined;
      })
  | ({ readonly name: 'developer-key' } & Developer & {
        readonly values: { readonly name: string; readonly scopes: readonly string[]; readonly days: number };
        readonly scopes: readonly Scope[];
        /** The lifetimes offered for a key, in days. */
        readonly days: readonly number[];
        readonly fault?: 'bad' | 'full' | undefined;
        readonly most: number;
      })
  | ({ readonly name: 'developer-made-key' } & Developer & {
        /** Shown only once. */
        readonly key: string;
        /** URL of an API call for trying the key. */
        readonly try: string;
      })
  | ({ readonly name: 'developer-requests' } & Developer & {
        /** The app or key to which the list is limited. */
        readonly of: string | null;
        readonly apps: readonly { readonly id: string; readonly name: string }[];
        /** Latest first. */
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
  /** Path of its logo. */
  readonly logo?: string | undefined;
}

/** The fields of an app's form; multiple values are one per line. */
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

/** A scope that has a text for members. */
export type ScopeName = keyof Texts['scopes'];

/** How a page is sent. */
export interface Sending {
  /** Origins and schemes to which redirects after the page's forms may lead: browsers check those too. */
  readonly formTargets?: readonly string[];
  /** Languages that the app requested (`ui_locales`). */
  readonly uiLocales?: unknown;
}

/** For responses other than pages: redirects, JSON. {@link Pages.render} overrides some of them. */
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
 * Renders all pages in the member's language: nothing is loaded from elsewhere, and the style sheet is inline. A few pages have a
 * script, also inline and allowed only by its hash; everything works without it.
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
  readonly #moments = new Map(LANGUAGES.map((language) => [language, new Moments(textsIn(language).locale)]));

  constructor(
    private readonly config: Config,
    private readonly logo: PlatformLogo,
  ) {
    const style = readFileSync(new URL('./templates/style.css', import.meta.url), 'utf8');
    this.#style = style + (config.platformColor === undefined ? '' : paletteOf(config.platformColor));
    this.#styleSource = sourceOf(this.#style);
  }

  /** Responds with a page; see {@link render}. */
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
    language: string,
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
      t: textsIn(language),
      style: this.#style,
      scripts: this.#scripts,
      platform,
      moments: this.#moments.get(language),
      newFormId,
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

/** The path at which the platform's logo is served. */
export const PLATFORM_LOGO_PATH = '/logos/platform';

/** Redirects after a form to the page that shows the result, so that a reload does not resend the form. */
export function redirect(response: Response, location: string): void {
  response.status(303).set('Location', location).end();
}

/** Functions for the templates. */
const WORDING = { browserOf, clip, escapeHtml, fill, fillHtml, initialOf, isolated, sentence };

/** Background colours of the style sheet, named as there. */
const [PAGE, DARK_CARD] = ['#f2f4f8', '#171b23'];

/** Overrides the style sheet's accent with the platform's colour, made light or dark enough to be readable (WCAG 2.2, 1.4.3). */
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

/** The hash source by which a Content-Security-Policy allows inline content. */
function sourceOf(text: string): string {
  return `'sha256-${sha256(text, 'base64')}'`;
}

/** An origin or private-use scheme as CSP writes it; anything else could widen the policy and is left out. */
function formSource(target: string): string[] {
  if (/^[a-z][a-z0-9+.-]*:$/.test(target))
    return /^(https?|javascript|data|blob|file|about):$/.test(target) ? [] : [target];
  if (!/^https?:\/\/[a-z0-9.\-[\]:]+$/.test(target) || !URL.canParse(target)) return [];
  // CSP cannot name an IPv6 address, such as a native app's loopback: any host with that port is the closest.
  return [target.replace(/\[.*\]/, '*')];
}
