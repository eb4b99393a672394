import { Injectable } from '@nestjs/common';
import type { JSONRPCRequest, JSONRPCResponse, Transport } from '@modelcontextprotocol/server';
import { Config } from '../config/config.js';
import { ProblemFilter } from '../http/output/problem.filter.js';
import { CURRENT, EARLIER, makeServer, type Exchange, type Sdk } from './server.js';
import { Toolbox, type Asked } from './toolbox.js';

type Json = Record<string, unknown>;

export interface MessageAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON; undefined for no content. */
  readonly text?: string;
}

const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;
const HEADER_MISMATCH = -32_020;
/** The property of `params` that the header Mcp-Name repeats, by method. */
const NAMED_BY = new Map(
  Object.entries({ 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }),
);

/** Serves MCP with two SDK servers: current and earlier revisions. Replaces requests' ids, since clients can use equal ids. */
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
    if (route.kind === 'reject') return writeFault(route.httpStatus, route, body);
    if (route.kind === 'modern') {
      const { message, classification } = route;
      if (route.messageKind === 'notification') return { status: 202 };
      const requested = classification.revision ?? 'unknown';
      if (requested !== CURRENT)
        return writeFault(
          400,
          new sdk.UnsupportedProtocolVersionError({ supported: [CURRENT], requested }),
          body,
        );
      const fault = headerFault(route.message, headers);
      if (fault !== undefined) return writeFault(400, { code: HEADER_MISMATCH, message: fault }, body);
      return this.#ask('current', message as JSONRPCRequest, { ...asked, params }, { classification });
    }
    if (route.reason !== 'initialize' && typeof version === 'string' && !EARLIER.includes(version))
      return writeFault(400, { code: INVALID_REQUEST, message: 'Unsupported protocol version' }, body);
    if (!sdk.isJSONRPCRequest(body)) return { status: 202 }; // a notification gets no response
    return this.#ask('earlier', body, { ...asked, params });
  }

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
        // The SDK rejected the request before any handler ran: the current revision then requires an error status.
        if (!isHandled && era === 'current' && 'error' in settled)
          status = settled.error.code === METHOD_NOT_FOUND ? 404 : 400;
        resolve(settled);
      };
      this.#exchanges.set(id, exchange);
      transport.onmessage!({ ...message, id }, extra);
      isHandled = true;
    });
    // The SDK reports invalid parameters as an internal error with a long text.
    if ('error' in answer && answer.error.code === INTERNAL_ERROR)
      return writeFault(status, { code: INVALID_PARAMS, message: 'Invalid params' }, message);
    const { headers = {} } = exchange.problem?.options ?? {};
    // Clients request another scope after this status and challenge.
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
        this.#loaded = undefined; // the next message loads the SDK again
        throw error;
      }));
  }

  /** Connects a server, which keeps no state between requests, to a transport. @returns the transport */
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

/** Makes an error response, with the message's id if it is valid. */
export function writeFault(
  status: number,
  { code, message, data }: { readonly code: number; readonly message: string; readonly data?: unknown },
  body: Json | object = {},
): MessageAnswer {
  const { method, id } = body as Json;
  const own = typeof method === 'string' && (typeof id === 'string' || Number.isSafeInteger(id)) ? id : null;
  return { status, text: JSON.stringify({ jsonrpc: '2.0', id: own, error: { code, message, data } }) };
}

/** Finds a header that is missing or contradicts the body (SEP-2243). The SDK compares only revision and method. */
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
