import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { serve, type LocalServer } from './http-server.js';

/** A message as received. */
export interface Received {
  /** `webhook-id`. */
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly message: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: {
      readonly member_id: number | null;
      readonly resource: string;
      readonly id: number;
      readonly kind: string;
    };
  };
}

/** A local webhook endpoint: stores the messages that it receives, and responds 204 by default. */
export class Receiver {
  readonly received: Received[] = [];
  /** Requests without a response, and their highest number so far. */
  underWay = 0;
  maxInProgress = 0;
  respond: (received: Received, response: ServerResponse) => void = (_, response) =>
    void response.writeHead(204).end();
  #waiting: (() => void)[] = [];

  private constructor(private readonly server: LocalServer) {}

  static async start(): Promise<Receiver> {
    const server = await serve((request, response) => {
      receiver.underWay++;
      receiver.maxInProgress = Math.max(receiver.maxInProgress, receiver.underWay);
      response.on('close', () => {
        receiver.underWay--;
        receiver.#tell();
      });
      void text(request).then((body) => {
        const received = {
          id: String(request.headers['webhook-id']),
          headers: request.headers,
          body,
          message: (body.startsWith('{') ? JSON.parse(body) : {}) as Received['message'], // a logout token is a form
        };
        receiver.received.push(received);
        receiver.respond(received, response);
        receiver.#tell();
      });
    });
    const receiver = new Receiver(server);
    return receiver;
  }

  get url(): string {
    return `${this.server.url}/hooks`;
  }

  /** The messages received, in order. */
  get told(): string[] {
    return this.received.map(({ message: { type, data } }) => `${type} ${data.id} of ${data.member_id}`);
  }

  /** Resolves when `isSo` is true; the condition is checked at each message and each response. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when this many messages have been received. */
  async untilReceived(count: number): Promise<void> {
    await this.until(() => this.received.length >= count);
  }

  close(): Promise<void> {
    return this.server.close();
  }

  /** Ends it at the end of the block that declares it by `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #tell(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** Whether the published Standard Webhooks library accepts the message with the secret. */
export function isVerified(secret: string, { body, headers }: Received): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}
