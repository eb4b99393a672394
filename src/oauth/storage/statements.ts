import type { NewAuthEvent } from '../../audit/audit.js';

/** Runs the statements of one request: the part of {@link OauthDatabase} that request objects such as {@link TokenRequest} need. */
export interface Statements {
  /** @param text a constant */
  rows(text: string, values: readonly unknown[]): Promise<unknown[]>;
  /** Gives an event of the current request as parameters of {@link recordEventIf}. */
  eventValues(event: NewAuthEvent): unknown[];
}
