import { Injectable } from '@nestjs/common';
import type { Transporter } from 'nodemailer';
import { Config } from '../config/config.js';

/** Time limit in ms for the connection, for the server's greeting, and for inactivity. */
const STEP_MS = 10_000;
/** Time limit in ms for sending one email. */
export const MAX_SENDING_MS = 30_000;

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly messageId?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends emails through the platform's mail server, each on a separate connection. */
@Injectable()
export class Mailer {
  #transport: Promise<Transporter> | undefined;

  constructor(private readonly config: Config) {}

  /** Sends an email; requires `Config.mail`. @param stop aborts sending @throws Error, with `responseCode` if the server rejected it */
  async send({ headers, ...mail }: Mail, stop?: AbortSignal): Promise<void> {
    const { smtpUrl: url, from } = this.config.mail!;
    this.#transport ??= import('nodemailer').then(({ createTransport }) =>
      createTransport({
        url,
        connectionTimeout: STEP_MS,
        greetingTimeout: STEP_MS,
        socketTimeout: STEP_MS,
        disableFileAccess: true,
        disableUrlAccess: true,
      }),
    );
    const transport = await this.#transport;
    const deadline = AbortSignal.timeout(MAX_SENDING_MS);
    await transport.sendMail({
      ...mail,
      from,
      headers: { 'Auto-Submitted': 'auto-generated', ...headers }, // RFC 3834 §5: no out-of-office replies
      signal: stop ? AbortSignal.any([stop, deadline]) : deadline,
    });
  }
}
