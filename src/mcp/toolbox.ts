import { Injectable } from '@nestjs/common';
import { ExternalContextCreator, ModuleRef } from '@nestjs/core';
import type { Request, Response } from 'express';
import type { Principal } from '../auth/principal.js';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { Usage } from '../auth/usage/usage.js';
import { FIRST_SCOPES, insufficientScope } from '../auth/www-authenticate.js';
import { Config } from '../config/config.js';
import { API_PREFIX, isUnder } from '../http/pipeline/api-headers.js';
import { isOutsideApi } from '../http/pipeline/outside-api.js';
import { makeCaller, type CallRoute, type RouteCall } from './route-calls.js';
import { RouteTable } from '../http/route-table.js';
import { changesTool, makeTool, type Tool } from './tools.js';

export interface Asked {
  readonly request: Request;
  readonly response: Response;
  readonly principal: Principal;
}

/** Tools for assistants, derived from the API's routes. */
@Injectable()
export class Toolbox {
  #known:
    { readonly tools: ReadonlyMap<string, Tool>; readonly calls: ReadonlyMap<string, CallRoute> } | undefined;

  constructor(
    private readonly config: Config,
    private readonly routeTable: RouteTable,
    private readonly modules: ModuleRef,
    private readonly contexts: ExternalContextCreator,
    private readonly rateLimits: RateLimits,
    private readonly usage: Usage,
  ) {}

  /** Tools in the order of the routes, and functions that call the routes; built at the first use. */
  get #all() {
    if (this.#known) return this.#known;
    const routes = this.routeTable.routes.filter(
      ({ controller, path }) => isUnder(API_PREFIX, path) && !isOutsideApi(controller),
    );
    const tools = routes.flatMap((route) => makeTool(route) ?? []);
    // If several lists have the same scope, the first list contains the member's items.
    const lists = Map.groupBy(
      tools.filter(({ listsChanges }) => listsChanges),
      ({ scopes }) => scopes[0],
    );
    tools.push(changesTool([...lists.values()].map(([first]) => first!)));
    return (this.#known = {
      tools: new Map(tools.map((tool) => [tool.name, tool])),
      calls: new Map(
        routes.map((route) => [route.handler.name, makeCaller(route, this.modules, this.contexts)]),
      ),
    });
  }

  has(name: string): boolean {
    return this.#all.tools.has(name);
  }

  /** Whether the credential has one of the scopes, or its app may request it. */
  mayHave({ scopes, clientScopes = scopes }: Principal, wanted: readonly string[]): boolean {
    return clientScopes.some((scope) => wanted.includes(scope));
  }

  /** Lists tools for the credential, including tools whose scope the app may request. @throws Problem insufficient_scope if none */
  listFor({ request, principal }: Asked): Record<string, unknown>[] {
    const tools = [...this.#all.tools.values()].filter(({ scopes }) => this.mayHave(principal, scopes));
    if (tools.length > 0) return tools.map(({ listed }) => listed);
    throw insufficientScope(this.config.publicUrl, request, FIRST_SCOPES.join(' '), principal.scopes);
  }

  /** Runs a tool for the request's caller. @throws Problem for the scope, rate limit or arguments, and errors of the route */
  async use(
    name: string,
    values: Readonly<Record<string, unknown>>,
    { request, response, principal }: Asked,
  ): Promise<string> {
    const { tools, calls } = this.#all;
    const { scopes, writes, check, use } = tools.get(name)!;
    const used = scopes.filter((scope) => principal.scopes.includes(scope));
    if (used.length === 0)
      throw insufficientScope(this.config.publicUrl, request, scopes.join(' '), principal.scopes);
    const overLimit = writes ? this.rateLimits.countCall('write', principal, response) : undefined;
    if (overLimit) throw overLimit;
    check(values);
    const call = (handler: string, sent: RouteCall) => calls.get(handler)!(request, response, sent);
    const answer = await use(values, call, principal.scopes);
    for (const scope of used) this.usage.countData(principal, scope);
    return JSON.stringify(answer, withoutNothing);
  }
}

/** Omits null and false, as the server's instructions state. */
const withoutNothing = (_: string, value: unknown) => (value === null || value === false ? undefined : value);
