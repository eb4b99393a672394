import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import type { OauthTest } from './oauth.js';

interface Received {
  readonly to: string[];
  readonly source: string;
}

/** A mail server that stores the emails that it accepts. */
export class MailServer {
  received: Received[] = [];
  /** Returns the response to a recipient instead of accepting the email. */
  refusal: (address: string) => Error | undefined = () => undefined;
  /** Called instead of the response to a recipient or to an email. */
  hold: { readonly at: 'recipient' | 'email'; readonly held: () => void } | undefined;
  readonly #server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo: ({ address }, _session, callback) => {
      if (this.hold?.at === 'recipient') this.hold.held();
      else callback(this.refusal(address));
    },
    onData: (stream, session, callback) => {
      let source = '';
      stream.setEncoding('utf8').on('data', (text: string) => (source += text));
      stream.on('end', () => {
        this.received.push({ to: session.envelope.rcptTo.map(({ address }) => address), source });
        if (this.hold?.at === 'email') this.hold.held();
        else callback();
      });
    },
  });

  static async start(port = 0): Promise<MailServer> {
    const mails = new MailServer();
    mails.#server.on('error', () => undefined); // a client that was killed
    await once(mails.#server.listen(port, '127.0.0.1'), 'listening');
    return mails;
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port;
  }

  /** The settings of a server that uses this mail server. */
  get mail() {
    return { smtpUrl: `smtp://127.0.0.1:${this.port}`, from: 'Gipfel <no-reply@gipfel.example>' };
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A member with an email address. */
export async function memberWithEmail(oauth: OauthTest, fields: Record<string, unknown> = {}) {
  const made = await oauth.member(fields);
  const email = `${made.username}@mail.example`;
  await oauth.query('UPDATE users SET email = $2 WHERE id = $1', [made.id, email]);
  return { ...made, email };
}

/** An email with quoted-printable decoded. */
export function textOf(mail: Received | undefined): string {
  const bytes = mail!.source
    .replace(/=\r\n/g, '')
    .replace(/=([\dA-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, /[^\0-\xff]/.test(bytes) ? 'utf8' : 'latin1').toString('utf8');
}
