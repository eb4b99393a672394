import type { NewAuthEvent } from '../../audit/audit.js';

/** What runs the statements of one request: {@link OauthDatabase}, as those see it whom it knows by the request itself. */
export interface Statements {
  /** @param text a constant */
  rows(text: string, values: readonly unknown[]): Promise<unknown[]>;
  /** An event of the current request as parameters of {@link recordEventIf}. */
  eventValues(event: NewAuthEvent): unknown[];
}
