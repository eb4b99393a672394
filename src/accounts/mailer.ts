import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Transporter } from 'nodemailer';
import { Config } from '../config/config.js';

/** How long each step of sending may take, in milliseconds. */
const PATIENCE_MS = 10_000;

/** Sends mails through SMTP_URL, if that is set. */
@Injectable()
export class Mailer implements OnApplicationShutdown {
  #transport: Promise<Transporter> | undefined;

  constructor(private readonly config: Config) {}

  /** Call it only if there is a mail server. @throws the error of the mail server, or of the connection to it */
  async send(mail: { to: string; subject: string; text: string }): Promise<void> {
    const { smtpUrl, from } = this.config.mail!;
    this.#transport ??= import('nodemailer').then(({ createTransport }) =>
      createTransport({
        url: smtpUrl,
        connectionTimeout: PATIENCE_MS,
        greetingTimeout: PATIENCE_MS,
        socketTimeout: PATIENCE_MS,
        disableFileAccess: true,
        disableUrlAccess: true,
      }),
    );
    await (await this.#transport).sendMail({ from, ...mail });
  }

  async onApplicationShutdown(): Promise<void> {
    (await this.#transport)?.close();
  }
}
