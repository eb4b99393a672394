import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Principal } from '../../auth/principal.js';
import { RateLimits } from '../../auth/rate-limits/rate-limits.js';
import { requireScope } from '../../auth/www-authenticate.js';
import { Config } from '../../config/config.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { API_PREFIX, isUnder } from '../../http/pipeline/api-headers.js';
import { isOutsideApi } from '../../http/pipeline/outside-api.js';
import { RouteCalls, type CallRoute } from '../../http/route-calls.js';
import { RouteTable } from '../../http/route-table.js';
import { toolOf, type Tool } from './tools.js';

/** The request that a message came with. */
export interface Asked {
  readonly request: Request;
  readonly response: Response;
}

/** The member for whom a message is answered. */
export const principalOf = ({ request }: Asked) => request.principal as Principal;

/** The tools of the running application: they follow from the routes of the API, so that a new list is a tool as well. */
@Injectable()
export class Toolbox {
  #tools: ReadonlyMap<string, Tool & { readonly call: CallRoute }> | undefined;

  constructor(
    private readonly config: Config,
    private readonly routeTable: RouteTable,
    private readonly routeCalls: RouteCalls,
    private readonly rateLimits: RateLimits,
  ) {}

  /** In the order of the routes, which is always the same. */
  get #known() {
    return (this.#tools ??= new Map(
      this.routeTable.routes
        .filter(({ controller, path }) => isUnder(API_PREFIX, path) && !isOutsideApi(controller))
        .flatMap((route) => {
          const tool = toolOf(route);
          return tool ? [[tool.name, { ...tool, call: this.routeCalls.of(route) }] as const] : [];
        }),
    ));
  }

  has(name: string): boolean {
    return this.#known.has(name);
  }

  /** Lists those that the credential may call. */
  listFor({ scopes }: Principal): Record<string, unknown>[] {
    return [...this.#known.values()]
      .filter(({ scope }) => scope === null || scopes.includes(scope))
      .map(({ listed }) => listed);
  }

  /**
   * Uses a tool for whoever sent the request.
   *
   * @throws Problem where the credential may not do it, or not now, and what the route throws
   */
  async use(name: string, values: Record<string, unknown>, asked: Asked): Promise<JsonResponse> {
    const { request, response } = asked;
    const { scope, writes, callWith, call } = this.#known.get(name)!;
    requireScope(this.config.publicUrl, request, scope);
    const overLimit = writes ? this.rateLimits.countCall('write', principalOf(asked), response) : undefined;
    if (overLimit) throw overLimit;
    const answer = await call(request, response, callWith(values));
    request.context.scope = scope;
    return answer;
  }
}
