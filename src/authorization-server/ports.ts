import type { IncomingHttpHeaders } from 'node:http';
import type { Response } from 'express';
import type { Client } from 'oidc-provider';
import type { ErrorPage, FaultName } from './failures/page-fault.js';

/** A client as pages show it to members. */
export interface PageClient {
  readonly name: string;
  /** Host of the redirect URI, or its scheme if it is not http(s); for a client with a metadata document, the document's host. */
  readonly host: string;
  /** An app on the member's device: another app can claim its redirect URI (RFC 8252 §8.6), so the consent page warns. */
  readonly native?: boolean;
  /** A member's app without approval, or an app with only a metadata document; the consent page shows a warning. */
  readonly unreviewed?: 'byMember' | 'byDocument' | undefined;
  readonly logo?: string | undefined;
  readonly homepage?: string | undefined;
  readonly policy?: string | undefined;
}

/** Describes a client for pages. @param redirectUri the URI in the request; default: the first registered URI */
export function pageClientOf(client: Client, redirectUri: string | undefined): PageClient {
  return {
    name: client.clientName ?? client.clientId,
    // A client can claim any name, so members must see its host.
    host: hostOf(
      client.has_document === true ? client.clientId : (redirectUri ?? client.redirectUris?.[0] ?? ''),
    ),
    native: client.applicationType === 'native',
    unreviewed:
      client.has_document === true
        ? 'byDocument'
        : client.by_member === true && client.is_approved !== true
          ? 'byMember'
          : undefined,
    logo: client.has_logo === true ? clientLogoPath(client.clientId) : undefined,
    homepage: client.clientUri,
    policy: client.policyUri,
  };
}

/** Returns the path of a client's logo. */
export function clientLogoPath(clientId: string): string {
  return `/logos/client?${new URLSearchParams({ client_id: clientId })}`;
}

/** Returns the host of an http(s) URI, or the scheme of any other URI; empty if the text is not a URI. */
export function hostOf(uri: string): string {
  if (!URL.canParse(uri)) return '';
  const { protocol, host } = new URL(uri);
  return protocol === 'https:' || protocol === 'http:' ? host : protocol.slice(0, -1);
}

export interface SignOutPage {
  readonly name: 'sign-out';
  readonly action: string;
  readonly fields: FormFields;
  readonly client: PageClient | null;
}

export interface SignedOutPage {
  readonly name: 'signed-out';
  readonly client: PageClient | null;
  /** Post-logout redirect URI of an app that the member has not connected: the page links to it instead of redirecting. */
  readonly back?: string;
}

export type FormFields = Readonly<Record<string, string>>;

/** A page that leads, or sends a form, to another origin: at once if `isAutomatic`, else after a click. */
export interface OnwardPage {
  readonly name: 'onward';
  readonly to: string;
  readonly form?: { readonly client: PageClient; readonly fields: FormFields };
  readonly isAutomatic: boolean;
}

/** Makes a page that leads from a form to another origin: Chromium and Safari apply `form-action` to every redirect after a form. */
export function onwardTo(to: string): OnwardPage {
  return { name: 'onward', to, isAutomatic: true };
}

/** A request whose page can be shown again in another language. */
export interface RepeatedRequest {
  readonly to: string;
  readonly csrf: string;
}

export type ShownPage = ErrorPage | SignOutPage | SignedOutPage | OnwardPage;

/** Renders pages for the authorization server, which supplies their content, but not their text or layout. */
export abstract class ShownPages {
  /** Languages (BCP 47); the first language is the default. */
  abstract readonly languages: readonly string[];

  /** Chooses a language: the member's choice, else the app's (`ui_locales`), else the browser's (`Accept-Language`). */
  abstract chooseLanguage(uiLocales: unknown, headers: IncomingHttpHeaders): string;

  abstract render(
    page: ShownPage,
    language: string,
    repeated?: RepeatedRequest,
  ): { html: string; headers: Record<string, string> };

  abstract send(response: Response, status: number, page: ShownPage): void;

  /** Describes a fault in English, for programs. */
  abstract meaningOf(fault: FaultName): string;
}

export abstract class UpstreamSignOut {
  /** @returns the provider's sign-out URL, if any @param target the next page (default: ours) @param isRepeated if a form was resent */
  abstract addressFor(target?: string, isRepeated?: boolean): Promise<string | undefined>;
}
