import type { IncomingHttpHeaders } from 'node:http';
import type { Response } from 'express';
import type { Client } from 'oidc-provider';
import type { ErrorPage, FaultName } from './failures/page-fault.js';

/** A client as members see it. All of it is the client's own claim, except for the registered host. */
export interface PageClient {
  readonly name: string;
  /** Host of the redirect URI; the scheme for a native app's own. */
  readonly host: string;
  /** An app on the member's device: another app can claim its redirect URI (RFC 8252 §8.6), so the consent page warns. */
  readonly native?: boolean;
  /** Registered by a member, or by nobody: known by its own document alone. The consent page says so. */
  readonly unreviewed?: 'byMember' | 'byDocument' | undefined;
  /** Path of its logo, which is served from here. */
  readonly logo?: string | undefined;
  /** URL of its home page. */
  readonly homepage?: string | undefined;
  /** URL of its privacy policy. */
  readonly policy?: string | undefined;
}

/** Describes a client for pages: the name it gives itself, and the host to which the member would be sent. */
export function pageClientOf(client: Client, redirectUri: string | undefined): PageClient {
  return {
    name: client.clientName ?? client.clientId,
    // A client's claims about itself are only as trustworthy as its host.
    host: hostOf(
      client.has_document === true ? client.clientId : (redirectUri ?? client.redirectUris?.[0] ?? ''),
    ),
    native: client.applicationType === 'native',
    unreviewed:
      client.has_document === true ? 'byDocument' : client.by_member === true ? 'byMember' : undefined,
    logo: client.has_logo === true ? clientLogoPath(client.clientId) : undefined,
    homepage: client.clientUri,
    policy: client.policyUri,
  };
}

/** Gives the path at which a client's logo is served. */
export function clientLogoPath(clientId: string): string {
  return `/logos/client?${new URLSearchParams({ client_id: clientId })}`;
}

/** Gives the host of a web redirect URI, or the scheme of a native app's. */
export function hostOf(uri: string): string {
  if (!URL.canParse(uri)) return '';
  const { protocol, host } = new URL(uri);
  return protocol === 'https:' || protocol === 'http:' ? host : protocol.slice(0, -1);
}

/** Asks whether the member wants to sign out. */
export interface SignOutPage {
  readonly name: 'sign-out';
  readonly action: string;
  /** Hidden fields of the form. */
  readonly fields: FormFields;
  readonly client: PageClient | null;
}

/** Confirms a sign-out. */
export interface SignedOutPage {
  readonly name: 'signed-out';
  readonly client: PageClient | null;
  /** Where an app wants the member to go that they do not know. */
  readonly back?: string;
}

/** What an app is sent in a form. */
export type FormFields = Readonly<Record<string, string>>;

/** Leads to another origin: at once, or by a button only. */
export interface OnwardPage {
  readonly name: 'onward';
  readonly to: string;
  /** A response that the app gets in a form at `to`. */
  readonly form?: { readonly client: PageClient; readonly fields: FormFields };
  readonly isAutomatic: boolean;
}

/**
 * Makes the page that leads to another origin after a form. Chromium and Safari apply `form-action` to every redirect after a form, and an
 * app's redirect URI may redirect anywhere: a page in between ends that chain.
 */
export function onwardTo(to: string): OnwardPage {
  return { name: 'onward', to, isAutomatic: true };
}

/** A request whose page comes again in another language. */
export interface RepeatedRequest {
  /** Path and query. */
  readonly to: string;
  /** For the form that repeats it. */
  readonly csrf: string;
}

/** The pages that the authorization server shows by itself. */
export type ShownPage = ErrorPage | SignOutPage | SignedOutPage | OnwardPage;

/** What the authorization server needs of whoever makes the pages: it knows what they say, not how they look or read. */
export abstract class ShownPages {
  /** The languages of pages (BCP 47); the first one is the default. */
  abstract readonly languages: readonly string[];

  /** Chooses one of them: what the member chose, else what the app asked for (`ui_locales`), else the browser (`Accept-Language`). */
  abstract languageOf(uiLocales: unknown, headers: IncomingHttpHeaders): string;

  /** @param repeated undefined where the page comes once */
  abstract render(
    page: ShownPage,
    language: string,
    repeated?: RepeatedRequest,
  ): { html: string; headers: Record<string, string> };

  abstract send(response: Response, status: number, page: ShownPage): void;

  /** What a fault means, in English, for programs. */
  abstract meaningOf(fault: FaultName): string;
}

/** What the authorization server needs of the platform's own login: that members are signed out there, too. */
export abstract class UpstreamSignOut {
  /**
   * Gives the provider's sign-out URL for a member whose session was just ended.
   *
   * @param target where the member would go otherwise: a registered URL, or undefined for the page that confirms the sign-out
   * @param isRepeated whether the session ended at an earlier request, which left nothing to tell where it came from
   * @returns undefined if there is no session at the provider to end
   */
  abstract addressFor(target?: string, isRepeated?: boolean): Promise<string | undefined>;
}
