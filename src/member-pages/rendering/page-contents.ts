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
import type { Application, ReviewState } from '../../clients/reviews.js';
import type { ClientDetails, SecretDetails } from '../../clients/clients.service.js';
import type { Invitation, Tester } from '../../clients/app-testers.js';
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

export type FlashMessage = keyof Texts['done'];

export interface MemberPageParts {
  readonly csrf: string;
  readonly user: PageUser;
  readonly done?: FlashMessage | undefined;
  readonly done_count?: number;
}

/** A page of an app's authorization request; the URLs of its forms begin with `path`. */
interface StepPage {
  readonly path: string;
  readonly csrf: string;
  readonly client: PageClient;
  readonly user: PageUser;
}

/** Contents of pages for sign-in, consent, unsubscribing and password resets. Texts may be untrusted; times are in the API's format. */
interface SignInPages {
  readonly 'sign-in': {
    readonly path: string;
    readonly csrf: string;
    /** The app; null on account and developer pages. */
    readonly client: PageClient | null;
    /** `toDeveloper`: for the developer pages; `again`: a signed-in member authenticates again. Default: for the app or the account. */
    readonly lead?: 'toDeveloper' | 'again';
    readonly username?: string;
    readonly fault?: SignInFault;
    /** Displayed name of the external identity provider; undefined if none is configured. */
    readonly login: string | undefined;
    /** Whether the external identity provider must prompt, even within its session. */
    readonly prompted?: boolean;
    /** `only`: the app requests a passkey, so the page has no password field. */
    readonly passkeys: 'too' | 'only' | undefined;
  };
  readonly consent: StepPage & {
    /** `required`: the form shows the scope, but members cannot deselect it; `writes`: the app can change data with this scope. */
    readonly scopes: readonly { name: string; checked: boolean; required: boolean; writes: boolean }[];
    /** Whether the member has consented to the app before, and the app has not changed since. */
    readonly again: boolean;
    /** Digest of the details of an app that no admin registered. The form returns it, since the app can change before the consent. */
    readonly seen?: string | null;
    readonly durations: readonly Duration[];
    readonly duration: Duration;
    /** Days without use after which the access ends. */
    readonly idle: number;
  };
  /** Replaces the consent page if the app is closed to the member: see `Consents.isClosedTo`. */
  readonly 'not-approved': StepPage;
  readonly unsubscribe: { readonly notice: NoticeType; readonly token: string; readonly done: boolean };
  readonly 'password-reset': {
    readonly csrf: string;
    readonly step: 'ask' | 'sent' | 'choose' | 'expired' | 'done';
    readonly token?: string;
    readonly username?: string;
    readonly fault?: PasswordFault;
    /** For `done`: passkeys that still work. */
    readonly passkeys?: readonly Pick<ShownPasskey, 'name' | 'created_at' | 'last_used_at'>[];
  };
}

/** Contents of a signed-in member's pages, in addition to {@link MemberPageParts}. */
interface MemberPages {
  readonly apps: {
    readonly apps: readonly (Pick<ConnectedApp, 'client_id' | 'since' | 'access_ends_at' | 'last_used_at'> & {
      readonly client: PageClient;
      readonly scopes: readonly string[];
      readonly durations: readonly Duration[];
    })[];
    /** Apps that the member tests, or is invited to test. */
    readonly invitations?: readonly (Pick<Invitation, 'client_id' | 'invited_by' | 'is_accepted'> & {
      readonly client: PageClient;
    })[];
    readonly more?: number;
  };
  readonly calendar: {
    /** Path at which the member must first authenticate again; the page then omits the form. */
    readonly confirm?: string | undefined;
    readonly longest: number;
    readonly most: number;
    readonly links: readonly CalendarLinkDetails[];
    readonly made?: { readonly name: string; readonly url: string } | undefined;
    readonly fault?: 'name' | 'limit';
  };
  readonly data: { readonly confirm?: string | undefined; readonly fault?: 'running' | 'full' | undefined };
  readonly keys: {
    readonly keys: readonly Pick<
      KeyDetails,
      'id' | 'name' | 'environment' | 'scopes' | 'created_at' | 'last_used_at' | 'expires_at'
    >[];
    readonly more?: number;
  };
  readonly activity: Activity;
  readonly sessions: {
    readonly sessions: readonly (BrowserSession & { readonly current: boolean })[];
    readonly more?: number;
    readonly also?: { readonly apps: number; readonly links: number };
  };
  readonly security: {
    readonly fault?: keyof Texts['security']['faults'] | undefined;
    /** Path at which the member must first authenticate again; until then, the page allows no changes. */
    readonly confirm?: string | undefined;
    readonly passkeys?:
      | {
          /** The default name of a new passkey. */
          readonly suggested: string;
          readonly items: readonly ShownPasskey[];
          readonly removable: boolean;
          readonly full: boolean;
        }
      | undefined;
    /** Notices that members can mute; undefined if this server sends no emails. */
    readonly notices?: readonly { readonly notice: NoticeType; readonly muted: boolean }[] | undefined;
    readonly password: 'none' | 'on' | 'off';
    readonly retryAfterSeconds?: number | undefined;
    readonly switchable: boolean;
  };
  readonly developer: {
    readonly clients: readonly (DeveloperClient & { readonly host: string })[];
    /** Newest first, including recently ended keys. */
    readonly keys: readonly (Pick<
      KeyDetails,
      'id' | 'name' | 'environment' | 'last_four' | 'scopes' | 'status' | 'last_used_at'
    > & { readonly accepted: boolean; readonly ends_at: string })[];
    readonly most: { readonly clients: number; readonly keys: number };
  };
  readonly 'developer-client': {
    /** null for an app that is not registered yet. */
    readonly client:
      | (DeveloperClient & {
          readonly has_keys: boolean;
          readonly waits?: boolean;
          /** null for an app without secrets. */
          readonly secrets: readonly SecretDetails[] | null;
        })
      | null;
    readonly profiles: readonly ClientDetails['profile'][];
    readonly values: ClientForm;
    readonly webhooks?: readonly AppWebhook[];
    readonly scopes: readonly Scope[];
    readonly server: string;
    readonly fault?: ClientFault | undefined;
  };
  readonly 'developer-review': Pick<ClientDetails, 'review' | 'applied_at' | 'approved_at' | 'rejection'> & {
    readonly client: DeveloperClient;
    /** Details of the app whose new values wait for an approval. */
    readonly changes: readonly ('name' | 'logo' | 'redirect_uris' | 'scopes')[];
    readonly canApply: boolean;
    readonly scopes: readonly string[];
    readonly values: Application;
    readonly longest: { readonly purpose: number; readonly reason: number };
    /** null if the app needs no testers. */
    readonly testers: readonly Tester[] | null;
    readonly most: number;
    readonly fault?: keyof Texts['developer']['review']['faults'] | undefined;
  };
  readonly 'developer-key': {
    readonly values: { readonly name: string; readonly scopes: readonly string[]; readonly days: number };
    readonly scopes: readonly Scope[];
    readonly days: readonly number[];
    readonly fault?: 'bad' | 'full' | undefined;
    readonly most: number;
  };
  readonly 'developer-made-key': Readonly<Record<'key' | 'try', string>>;
  readonly 'developer-webhooks': {
    readonly app: { readonly id: string; readonly name: string };
    readonly webhooks: readonly (Pick<
      WebhookDetails,
      'id' | 'url' | 'status' | 'types' | 'previous_secret_until'
    > & { readonly last: Omit<DeliveryDetails, 'member_id'> | null })[];
    /** Message types for another webhook; empty if the app or key is no longer valid. */
    readonly types: readonly string[];
    readonly values: { readonly url: string; readonly types: readonly string[] };
    readonly fault?: 'url' | 'types' | 'full' | undefined;
    readonly most: number;
  };
  readonly 'developer-made-secret': {
    /** Set for a client secret; for a webhook secret, `webhooks_of` is set instead. */
    readonly client_id?: string;
    readonly webhooks_of?: { readonly id: string; readonly name: string };
    readonly secret: string;
  };
  readonly 'developer-requests': {
    readonly of: string | null;
    readonly apps: readonly { readonly id: string; readonly name: string }[];
    readonly use: DevelopedUse;
    readonly requests: readonly ShownRequest[];
    readonly most: number;
  };
}

type Named<Pages> = { [Name in keyof Pages]: { readonly name: Name } & Pages[Name] }[keyof Pages];

export type MemberPage = Named<MemberPages>;

export type Page =
  Named<SignInPages> | SignOutPage | SignedOutPage | OnwardPage | ErrorPage | (MemberPageParts & MemberPage);

export type PageOf<Name extends Page['name']> = Extract<Page, { name: Name }>;

export type AppWebhook = Pick<WebhookDetails, 'url' | 'status'> & {
  readonly deliveries: readonly Omit<DeliveryDetails, 'member_id'>[];
};

export interface DeveloperClient extends Pick<ClientDetails, 'client_id' | 'name' | 'type'> {
  readonly state: keyof Texts['developer']['state'];
  /** undefined if apps need no review, and this app has none. */
  readonly review?: ReviewState | undefined;
  readonly logo?: string | undefined;
}

/** The fields of an app's form; lists have one value per line. */
export type ClientForm = Readonly<Record<Exclude<ClientFault['field'], 'scopes' | 'logo'>, string>> & {
  readonly type: 'web' | 'native';
  readonly scopes: readonly string[];
};
