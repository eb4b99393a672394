import { Injectable } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/internal';
import { ExternalContextCreator, ModuleRef } from '@nestjs/core';
import { RouteParamsFactory } from '@nestjs/core/router/route-params-factory.js';
import type { Request, Response } from 'express';
import { parseQuery, queryOfHandler } from './input/query.js';
import { JsonResponse } from './output/responses.js';
import type { Route } from './route-table.js';

export interface RouteCall {
  /** Path parameters, as sent. */
  readonly params: Readonly<Record<string, string>>;
  /** Without its question mark. */
  readonly query: string;
  /** JSON, if the route takes a body. */
  readonly body?: Buffer;
  readonly ifMatch?: string | undefined;
}

const sources = new RouteParamsFactory();
const noNext = () => undefined;

export type CallRoute = (request: Request, response: Response, call: RouteCall) => Promise<JsonResponse>;

/** Calls API handlers like the router, with a derived request. The caller must check access. */
@Injectable()
export class RouteCalls {
  constructor(
    private readonly modules: ModuleRef,
    private readonly contexts: ExternalContextCreator,
  ) {}

  /** @returns a function that rejects with the route's Problem */
  of({ controller, handler }: Route): CallRoute {
    const instance = this.modules.get<object>(controller, { strict: false });
    const invoke = this.contexts.create(
      instance as never,
      handler as never,
      handler.name,
      ROUTE_ARGS_METADATA,
      {
        exchangeKeyForValue: (type, data, [req, res]) =>
          sources.exchangeKeyForValue(type, data as string, { req, res, next: noNext }),
      },
      undefined,
      undefined,
      { guards: false, interceptors: false, filters: false },
      'http',
    );
    const accepted = queryOfHandler(handler);
    return async (request, response, { params, query, body, ifMatch }) => {
      const parameters = parseQuery(accepted, query);
      const headers = { ...request.headers, 'if-match': ifMatch };
      const own = Object.assign(Object.create(request) as Request, { params, parameters, body, headers });
      const answer = (await invoke(own, response)) as JsonResponse | object;
      return answer instanceof JsonResponse ? answer : new JsonResponse(JSON.stringify(answer));
    };
  }
}
