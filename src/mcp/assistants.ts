import { Injectable } from '@nestjs/common';
import type { JSONRPCRequest, JSONRPCResponse, Transport } from '@modelcontextprotocol/server';
import { Config } from '../config/config.js';
import { ProblemFilter } from '../http/output/problem.filter.js';
import { CURRENT, EARLIER, makeServer, type Exchange, type Sdk } from './server.js';
import { Toolbox, type Asked } from './toolbox.js';

type Json = Record<string, unknown>;

/** What a message of the protocol is answered with. */
export interface MessageAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON; undefined where nothing is to be said. */
  readonly text?: string;
}

const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;
const HEADER_MISMATCH = -32_020;
/** Which member of `params` the header Mcp-Name repeats. */
const NAMED_BY = new Map(
  Object.entries({ 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }),
);

/**
 * The server of the protocol, by its own SDK, which is loaded with the first message. There is one of each era for the whole process,
 * since nothing is kept between messages: whose message is answered is found by an id of our own, which takes the place of the client's
 * while the SDK works. Two clients, or one that tries, cannot meet in one id.
 */
@Injectable()
export class Assistants {
  readonly #exchanges = new Map<unknown, Exchange>();
  #lastId = 0;
  #loaded: Promise<{ sdk: Sdk; current: Transport; earlier: Transport }> | undefined;

  constructor(
    private readonly config: Config,
    private readonly tools: Toolbox,
    private readonly problems: ProblemFilter,
  ) {}

  /** Answers a message: JSON that came with the request. */
  async answer(body: object, asked: Asked): Promise<MessageAnswer> {
    const { sdk } = await this.#load();
    const { headers } = asked.request;
    const { params } = body as JSONRPCRequest;
    const version = headers['mcp-protocol-version'];
    const route = sdk.classifyInboundRequest({
      httpMethod: 'POST',
      body,
      ...(typeof version === 'string' ? { protocolVersionHeader: version } : {}),
      ...(typeof headers['mcp-method'] === 'string' ? { mcpMethodHeader: headers['mcp-method'] } : {}),
    });
    if (route.kind === 'reject') return faultOf(route.httpStatus, route, body);
    if (route.kind === 'modern') {
      const { message, classification } = route;
      if (route.messageKind === 'notification') return { status: 202 };
      const requested = classification.revision ?? 'unknown';
      if (requested !== CURRENT)
        return faultOf(
          400,
          new sdk.UnsupportedProtocolVersionError({ supported: [CURRENT], requested }),
          body,
        );
      const fault = headerFault(route.message, headers);
      if (fault !== undefined) return faultOf(400, { code: HEADER_MISMATCH, message: fault }, body);
      return this.#ask('current', message as JSONRPCRequest, { ...asked, params }, { classification });
    }
    if (route.reason !== 'initialize' && typeof version === 'string' && !EARLIER.includes(version))
      return faultOf(400, { code: INVALID_REQUEST, message: 'Unsupported protocol version' }, body);
    if (!sdk.isJSONRPCRequest(body)) return { status: 202 }; // nobody waits for an answer
    return this.#ask('earlier', body, { ...asked, params });
  }

  /** Lets the SDK answer a request. */
  async #ask(
    era: 'current' | 'earlier',
    message: JSONRPCRequest,
    asked: Omit<Exchange, 'settle'>,
    extra = {},
  ): Promise<MessageAnswer> {
    const { [era]: transport } = await this.#load();
    const id = ++this.#lastId;
    const exchange: Exchange = { ...asked, settle: () => undefined };
    let isHandled = false;
    let status = 200;
    const answer = await new Promise<JSONRPCResponse>((resolve) => {
      exchange.settle = (settled) => {
        // What no handler has seen is at fault as a request, which the current revision says in the status, too.
        if (!isHandled && era === 'current' && 'error' in settled)
          status = settled.error.code === METHOD_NOT_FOUND ? 404 : 400;
        resolve(settled);
      };
      this.#exchanges.set(id, exchange);
      transport.onmessage!({ ...message, id }, extra);
      isHandled = true;
    });
    // The SDK reports parameters that it cannot read like that, at length.
    if ('error' in answer && answer.error.code === INTERNAL_ERROR)
      return faultOf(status, { code: INVALID_PARAMS, message: 'Invalid params' }, message);
    const { headers = {} } = exchange.problem?.options ?? {};
    // Clients ask for another scope by the status and the challenge.
    if ('WWW-Authenticate' in headers) status = exchange.problem!.definition.status;
    return { status, headers, text: JSON.stringify({ ...answer, id: message.id }) };
  }

  #load() {
    return (this.#loaded ??= import('@modelcontextprotocol/server')
      .then(async (sdk) => ({
        sdk,
        current: await this.#serve(sdk, { era: 'modern', revision: CURRENT }),
        earlier: await this.#serve(sdk, { era: 'legacy' }),
      }))
      .catch((error: unknown) => {
        this.#loaded = undefined; // the next message tries again
        throw error;
      }));
  }

  /** Makes a server, and what hands messages over to it: never closed, and without anything of one request. */
  async #serve(
    sdk: Sdk,
    classification: { era: 'modern' | 'legacy'; revision?: string },
  ): Promise<Transport> {
    const transport: Transport = new sdk.PerRequestHTTPServerTransport({ classification });
    transport.send = (message) => {
      const { id } = message as JSONRPCResponse;
      this.#exchanges.get(id)?.settle(message as JSONRPCResponse);
      this.#exchanges.delete(id);
      return Promise.resolve();
    };
    const exchangeOf = (id: unknown) => this.#exchanges.get(id)!;
    await makeServer(sdk, this.config, this.tools, this.problems, exchangeOf).connect(transport);
    return transport;
  }
}

/** Answers what could not be handed over, with the id of the request if it has one. */
export function faultOf(
  status: number,
  { code, message, data }: { readonly code: number; readonly message: string; readonly data?: unknown },
  body: Json | object = {},
): MessageAnswer {
  const { method, id } = body as Json;
  const own = typeof method === 'string' && (typeof id === 'string' || Number.isSafeInteger(id)) ? id : null;
  return { status, text: JSON.stringify({ jsonrpc: '2.0', id: own, error: { code, message, data } }) };
}

/**
 * Finds what is wrong with the headers that repeat a request's body (SEP-2243), for proxies that do not read it. The SDK checks that they are
 * there only in its own handler of fetch requests; where they disagree on revision and method it says so itself.
 */
function headerFault(
  { method, params }: Pick<JSONRPCRequest, 'method' | 'params'>,
  headers: Json,
): string | undefined {
  for (const name of ['mcp-protocol-version', 'mcp-method'])
    if (headers[name] === undefined) return `Bad Request: the header ${name} is missing`;
  const member = NAMED_BY.get(method);
  const value = member && (params as Json | undefined)?.[member];
  if (typeof value !== 'string') return undefined;
  const given = headers['mcp-name'];
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(String(given)) ?? [];
  const name = encoded === undefined ? given : Buffer.from(encoded, 'base64').toString();
  return name === value ? undefined : `Bad Request: the header mcp-name must be the ${member} of the body`;
}
