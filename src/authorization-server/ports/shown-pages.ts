import type { Response } from 'express';
import type { ErrorPage, FaultName } from '../failures/page-fault.js';
import type { PageClient } from './page-client.js';

/** Asks whether the member wants to sign out. */
export interface SignOutPage {
  readonly name: 'sign-out';
  readonly action: string;
  /** For the form. */
  readonly xsrf: string;
  readonly client: PageClient | null;
}

/** Confirms a sign-out. */
export interface SignedOutPage {
  readonly name: 'signed-out';
  readonly client: PageClient | null;
  /** Where an app wants the member to go that they do not know. */
  readonly back?: string;
}

/** The pages that the authorization server shows by itself. */
export type ShownPage = ErrorPage | SignOutPage | SignedOutPage;

/** What the authorization server needs of whoever makes the pages: it knows what they say, not how they look or read. */
export abstract class ShownPages {
  /** The languages of pages (BCP 47); the first one is the default. */
  abstract readonly languages: readonly string[];

  /** Chooses one of them: by what the app asked for (`ui_locales`), else the browser (`Accept-Language`). */
  abstract languageOf(uiLocales: unknown, accept: string | undefined): string;

  /** @param formTargets origins and schemes to which the page's forms may lead */
  abstract render(
    page: ShownPage,
    language: string,
    formTargets?: readonly string[],
  ): { html: string; headers: Record<string, string> };

  abstract send(response: Response, status: number, page: ShownPage): void;

  /** What a fault means, in English, for programs. */
  abstract meaningOf(fault: FaultName): string;
}
