import {
  IncomingMessage,
  ServerResponse,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
} from 'node:http';
import type { Express } from 'express';

declare module 'node:http' {
  interface ServerResponse {
    /** Adds a header without `setHeader`'s costly checks. `setHeader` and `writeHead` replace a header of the same name. */
    gather(name: string, value: string): void;
  }
}

/** Names and values, alternating. */
type Pairs = string[];
type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Makes message classes with Express's prototypes, since Express would otherwise change each message's prototype, at a cost. */
export function makeMessageClasses(app: Express): {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
} {
  class Incoming extends IncomingMessage {}
  Object.setPrototypeOf(Incoming.prototype, app.request);
  app.request = Incoming.prototype as unknown as Express['request'];

  class Outgoing<Request extends IncomingMessage> extends ServerResponse<Request> {
    readonly #gathered: string[] = [];

    override gather(name: string, value: string): void {
      this.#gathered.push(name, value);
    }

    /** Node also calls this method if a body is sent first. */
    override writeHead(status: number, ...rest: unknown[]): this {
      const reason = typeof rest[0] === 'string' ? rest[0] : undefined;
      const given = (reason === undefined ? (rest[0] ?? rest[1]) : rest[1]) as Headers | undefined;
      let headers = this.#gathered;
      const set = this.getHeaderNames();
      if (set.length > 0) headers = without(headers, set);
      if (given !== undefined) headers = joined(headers, pairsOf(given));
      return reason === undefined
        ? super.writeHead(status, headers)
        : super.writeHead(status, reason, headers);
    }
  }
  Object.setPrototypeOf(Outgoing.prototype, app.response);
  app.response = Outgoing.prototype as unknown as Express['response'];
  return { IncomingMessage: Incoming, ServerResponse: Outgoing };
}

function pairsOf(headers: Headers): Pairs {
  if (Array.isArray(headers)) return headers as string[];
  return Object.entries(headers).flatMap(([name, values]) =>
    [values ?? []].flat().flatMap((value) => [name, String(value)]),
  );
}

/** Joins two lists of headers; a header in the second list replaces a header of the same name in the first. */
function joined(first: Pairs, second: Pairs): Pairs {
  const names = second.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  return [...without(first, names), ...second];
}

/** @param names in lower case */
function without(headers: Pairs, names: readonly string[]): Pairs {
  return headers.filter((_, i) => !names.includes(headers[i - (i % 2)]!.toLowerCase()));
}
