import { ROUTE_ARGS_METADATA } from '@nestjs/common/internal';
import type { ExternalContextCreator, ModuleRef } from '@nestjs/core';
import { RouteParamsFactory } from '@nestjs/core/router/route-params-factory.js';
import type { Request, Response } from 'express';
import { accessOf } from '../auth/auth.guards.js';
import { parseQuery, queryOfHandler } from '../http/input/query.js';
import { JsonResponse } from '../http/output/responses.js';
import type { Route } from '../http/route-table.js';

export interface RouteCall {
  /** Path parameters, as sent. */
  readonly params: Readonly<Record<string, string>>;
  /** The query without question mark. */
  readonly query: string;
  /** The body as JSON, if the route accepts one. */
  readonly body?: Buffer;
  readonly ifMatch?: string | undefined;
}

const sources = new RouteParamsFactory();

/** Calls a route. @throws Problem of the route */
export type CallRoute = (request: Request, response: Response, call: RouteCall) => Promise<JsonResponse>;

/** Makes a function that calls a route's handler without guards, interceptors and filters. Check access before calling it. */
export function makeCaller(
  { controller, handler }: Route,
  modules: ModuleRef,
  contexts: ExternalContextCreator,
): CallRoute {
  const invoke = contexts.create(
    modules.get<Record<string, never>>(controller, { strict: false }),
    handler as never,
    handler.name,
    ROUTE_ARGS_METADATA,
    {
      exchangeKeyForValue: (type, data, [req, res]) =>
        sources.exchangeKeyForValue(type, data as string, { req, res, next: () => undefined }),
    },
    undefined,
    undefined,
    { guards: false, interceptors: false, filters: false },
    'http',
  );
  const accepted = queryOfHandler(handler);
  const scope = accessOf(handler, controller);
  return async (request, response, { params, query, body, ifMatch }) => {
    const own = Object.create(request) as Request; // leaves the live request unchanged
    const headers = { ...request.headers, 'if-match': ifMatch };
    Object.assign(own, { params, parameters: parseQuery(accepted, query), body, headers, scope });
    const answer = (await invoke(own, response)) as JsonResponse | object;
    return answer instanceof JsonResponse ? answer : new JsonResponse(JSON.stringify(answer));
  };
}
