import type { PasswordFault } from '../../accounts/passwords/passwords.js';
import type { SignInFault } from '../../accounts/sign-in/sign-in.js';
import type { ShownPasskey } from '../../accounts/sign-in/sign-in-methods.js';
import type { NoticeType } from '../../audit/notices.js';
import type { KeyDetails } from '../../auth/api-keys/api-keys.service.js';
import type { Scope } from '../../auth/scopes.js';
import type { DevelopedUse } from '../../auth/usage/developed-use.js';
import type { ShownRequest } from '../../auth/usage/developer-requests.js';
import type { CalendarLinkDetails } from '../../calendar/calendar-links.js';
import type { Activity } from '../../clients/activity.js';
import type { Duration } from '../../clients/access-durations.js';
import type { ClientFault } from '../../clients/client-rules.js';
import type { ClientDetails, SecretDetails } from '../../clients/clients.service.js';
import type { BrowserSession, ConnectedApp } from '../../clients/connected-apps.js';
import type { ErrorPage } from '../../authorization-server/failures/page-fault.js';
import type { OnwardPage, PageClient, SignedOutPage, SignOutPage } from '../../authorization-server/ports.js';
import type { DeliveryDetails, WebhookDetails } from '../../webhooks/webhooks.service.js';
import type { Texts } from './wording.js';

export interface PageUser {
  readonly username: string;
  readonly display_name: string;
}

export interface SignedInUser extends PageUser {
  readonly id: number;
}

/** A notice of what a member's action has done. */
export type FlashMessage = keyof Texts['done'];

/** What all pages of a signed-in member have. */
export interface MemberPageParts {
  /** For the forms on the page. */
  readonly csrf: string;
  readonly user: PageUser;
  readonly done?: FlashMessage | undefined;
  /** How many items that was about. */
  readonly done_count?: number;
}

/** What the pages show on which a member signs in, or allows an app something. All texts may be untrusted; moments are in the API's format. */
interface SignInPages {
  readonly 'sign-in': {
    /** Of the step or page for which the member signs in: the forms and links are below it. */
    readonly path: string;
    readonly csrf: string;
    /** null if the member signs in for the account pages. */
    readonly client: PageClient | null;
    /** What the member signs in for, if neither an app nor the account. */
    readonly lead?: 'toDeveloper' | 'again';
    readonly username?: string;
    readonly fault?: SignInFault;
    /** Name of the platform's own login, if there is one. */
    readonly login: string | undefined;
    /** Whether it is to ask who signs in, even if it has a session of theirs. */
    readonly prompted?: boolean;
    /** Whether passkeys are offered; `only`: the app requires one, and a password is not accepted. */
    readonly passkeys: 'too' | 'only' | undefined;
  };
  readonly consent: {
    /** Of the step: its forms are below it. */
    readonly path: string;
    readonly csrf: string;
    readonly client: PageClient;
    readonly user: PageUser;
    /** `required` scopes are shown, but cannot be unticked and are not sent; `writes`: the app can change something with it. */
    readonly scopes: readonly { name: string; checked: boolean; required: boolean; writes: boolean }[];
    /** The client had consent before. */
    readonly again: boolean;
    /** Digest of what the member sees of an app that nobody reviewed: the form returns it, since the app can change meanwhile. */
    readonly seen?: string | null;
    /** How long the member can let the app have access, and what is preselected. */
    readonly durations: readonly Duration[];
    readonly duration: Duration;
    /** Days without use after which the access ends. */
    readonly idle: number;
  };
  /** Stops the emails about a notice. */
  readonly unsubscribe: {
    readonly notice: NoticeType;
    /** Of the link. */
    readonly token: string;
    readonly done: boolean;
  };
  /** A password reset by email, step by step. */
  readonly 'password-reset': {
    readonly csrf: string;
    readonly step: 'ask' | 'sent' | 'choose' | 'expired' | 'done';
    /** The secret of the link, for `choose`. */
    readonly token?: string;
    readonly username?: string;
    readonly fault?: PasswordFault;
    /** For `done`: the passkeys that still work besides the new password. */
    readonly passkeys?: readonly Pick<ShownPasskey, 'name' | 'created_at' | 'last_used_at'>[];
  };
}

/** The same of the pages of a signed-in member, besides {@link MemberPageParts}. */
interface MemberPages {
  readonly apps: {
    readonly apps: readonly (Pick<ConnectedApp, 'client_id' | 'since' | 'access_ends_at' | 'last_used_at'> & {
      readonly client: PageClient;
      readonly scopes: readonly string[];
      /** Among which the member can change how long it has access. */
      readonly durations: readonly Duration[];
    })[];
    readonly more?: number;
  };
  readonly calendar: {
    /** Where the member authenticates again, if the sign-in is too old for the form; the page does not have it then. */
    readonly confirm?: string | undefined;
    /** Maximum length of a link's name, in code points. */
    readonly longest: number;
    /** How many links a member may have. */
    readonly most: number;
    readonly links: readonly CalendarLinkDetails[];
    /** The link just created, shown only once. */
    readonly made?: { readonly name: string; readonly url: string } | undefined;
    readonly fault?: 'name' | 'limit';
  };
  /** Where a member downloads what is held about them. */
  readonly data: {
    /** As on the calendar's page. */
    readonly confirm?: string | undefined;
    readonly fault?: 'running' | 'full' | undefined;
  };
  readonly keys: {
    readonly keys: readonly Pick<
      KeyDetails,
      'id' | 'name' | 'environment' | 'scopes' | 'created_at' | 'last_used_at' | 'expires_at'
    >[];
    /** How many more there are, older than these. */
    readonly more?: number;
  };
  readonly activity: Activity;
  readonly sessions: {
    readonly sessions: readonly (BrowserSession & { readonly current: boolean })[];
    /** How many more there are, last seen before these. */
    readonly more?: number;
    /** How much else still has access, which the member can end with them. */
    readonly also?: { readonly apps: number; readonly links: number };
  };
  readonly security: {
    readonly fault?: keyof Texts['security']['faults'] | undefined;
    /** Where the member authenticates again, if the sign-in is too old for a change; the page has no forms then. */
    readonly confirm?: string | undefined;
    /** undefined if this server offers no passkeys. */
    readonly passkeys?:
      | {
          /** The default name of a new one. */
          readonly suggested: string;
          readonly items: readonly ShownPasskey[];
          /** Whether one can be removed: not if it is the last way to sign in. */
          readonly removable: boolean;
          /** No further one can be added. */
          readonly full: boolean;
        }
      | undefined;
    /** The emails that the member can choose; undefined if this server sends none. */
    readonly notices?: readonly { readonly notice: NoticeType; readonly muted: boolean }[] | undefined;
    readonly password: 'none' | 'on' | 'off';
    /** For `throttled`. */
    readonly retryAfterSeconds?: number | undefined;
    /** Whether the password can be switched off or on: not if it is the only way to sign in. */
    readonly switchable: boolean;
  };
  readonly developer: {
    readonly clients: readonly (DeveloperClient & { readonly host: string })[];
    /** Newest first, including those that ended recently. */
    readonly keys: readonly (Pick<
      KeyDetails,
      'id' | 'name' | 'environment' | 'last_four' | 'scopes' | 'status' | 'last_used_at'
    > & { readonly accepted: boolean; readonly ends_at: string })[];
    readonly most: { readonly clients: number; readonly keys: number };
  };
  readonly 'developer-client': {
    /** null if it is not registered yet. */
    readonly client:
      | (DeveloperClient & {
          readonly has_keys: boolean;
          /** null for an app that does not authenticate with one. */
          readonly secrets: readonly SecretDetails[] | null;
        })
      | null;
    /** Among which the developer may choose; empty where there is nothing to choose. */
    readonly profiles: readonly ClientDetails['profile'][];
    readonly values: ClientForm;
    /** Receivers that are told of changes as this app. */
    readonly webhooks?: readonly AppWebhook[];
    readonly scopes: readonly Scope[];
    /** URL of this server, for the first lines of the app's code. */
    readonly server: string;
    readonly fault?: ClientFault | undefined;
  };
  readonly 'developer-key': {
    readonly values: { readonly name: string; readonly scopes: readonly string[]; readonly days: number };
    readonly scopes: readonly Scope[];
    readonly days: readonly number[];
    readonly fault?: 'bad' | 'full' | undefined;
    readonly most: number;
  };
  readonly 'developer-made-key': {
    /** Shown only once. */
    readonly key: string;
    /** URL of an API call for trying the key. */
    readonly try: string;
  };
  /** The receivers of one of the developer's apps or keys. */
  readonly 'developer-webhooks': {
    readonly app: { readonly id: string; readonly name: string };
    readonly webhooks: readonly (Pick<
      WebhookDetails,
      'id' | 'url' | 'status' | 'types' | 'previous_secret_until'
    > & {
      /** Its latest message; about which member is not said. */
      readonly last: Omit<DeliveryDetails, 'member_id'> | null;
    })[];
    /** Offered for another one; empty if the app or key is no longer valid. */
    readonly types: readonly string[];
    readonly values: { readonly url: string; readonly types: readonly string[] };
    readonly fault?: 'url' | 'types' | 'full' | undefined;
    readonly most: number;
  };
  readonly 'developer-made-secret': {
    /** The app whose client secret it is; or the one of whose receiver. */
    readonly client_id?: string;
    readonly webhooks_of?: { readonly id: string; readonly name: string };
    /** Shown only once. */
    readonly secret: string;
  };
  readonly 'developer-requests': {
    /** The app or key to which the list is limited. */
    readonly of: string | null;
    readonly apps: readonly { readonly id: string; readonly name: string }[];
    readonly use: DevelopedUse;
    /** Latest first. */
    readonly requests: readonly ShownRequest[];
    readonly most: number;
  };
}

type Named<Pages> = { [Name in keyof Pages]: { readonly name: Name } & Pages[Name] }[keyof Pages];

/** A page of a signed-in member, without the parts that all of them share. */
export type MemberPage = Named<MemberPages>;

/** What a page shows. */
export type Page =
  Named<SignInPages> | SignOutPage | SignedOutPage | OnwardPage | ErrorPage | (MemberPageParts & MemberPage);

/** What the page of this name shows. */
export type PageOf<Name extends Page['name']> = Extract<Page, { name: Name }>;

/** A receiver with its last messages, as the developer of its app sees them: about which member is not said. */
export type AppWebhook = Pick<WebhookDetails, 'url' | 'status'> & {
  readonly deliveries: readonly Omit<DeliveryDetails, 'member_id'>[];
};

/** An app as its developer sees it. */
export interface DeveloperClient {
  readonly client_id: string;
  readonly name: string;
  readonly type: 'web' | 'native';
  readonly state: keyof Texts['developer']['state'];
  readonly logo?: string | undefined;
}

/** The fields of an app's form; multiple values are one per line. */
export type ClientForm = Readonly<Record<Exclude<ClientFault['field'], 'scopes' | 'logo'>, string>> & {
  readonly type: 'web' | 'native';
  readonly scopes: readonly string[];
};
