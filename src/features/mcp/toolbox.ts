import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Principal } from '../../auth/principal.js';
import { RateLimits } from '../../auth/rate-limits/rate-limits.js';
import { insufficientScope } from '../../auth/www-authenticate.js';
import { Config } from '../../config/config.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { API_PREFIX, isUnder } from '../../http/pipeline/api-headers.js';
import { RouteTable } from '../../http/route-table.js';
import { OpenApiDocument } from '../openapi/openapi-document.js';
import { RouteCalls, type CallRoute } from './route-calls.js';
import { toolsOf, type DescribedCall, type Tool } from './tools.js';

/** The request that a message came with. */
export interface Asked {
  readonly request: Request;
  readonly response: Response;
  readonly principal: Principal;
}

/** The tools of the running application: they follow from the routes of the API, so that a new list is a tool as well. */
@Injectable()
export class Toolbox {
  #tools: ReadonlyMap<string, Tool & { readonly call: CallRoute }> | undefined;

  constructor(
    private readonly config: Config,
    private readonly document: OpenApiDocument,
    private readonly routeTable: RouteTable,
    private readonly routeCalls: RouteCalls,
    private readonly rateLimits: RateLimits,
  ) {}

  /** In the order of the OpenAPI document, which is always the same. */
  get #known() {
    return (this.#tools ??= new Map(this.#make().map((tool) => [tool.name, tool])));
  }

  #make() {
    const { paths, components } = this.document.read('members') as {
      paths: Record<string, Record<string, DescribedCall>>;
      components: { schemas: Record<string, Record<string, unknown>> };
    };
    return this.routeTable.routes.flatMap((route) => {
      const path = route.path.replace(/:(\w+)/g, '{$1}');
      const call = paths[path]?.[route.method.toLowerCase()];
      // What needs no credential is about the API itself.
      if (!isUnder(API_PREFIX, path) || !call || call.security.length === 0) return [];
      const invoke = this.routeCalls.of(route);
      return toolsOf(call, route.method, components.schemas).map((tool) => ({ ...tool, call: invoke }));
    });
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
  async use(
    name: string,
    values: Record<string, unknown>,
    { request, response, principal }: Asked,
  ): Promise<JsonResponse> {
    const { scope, writes, callWith, call } = this.#known.get(name)!;
    if (scope !== null && !principal.scopes.includes(scope))
      throw insufficientScope(this.config.publicUrl, request, scope, principal.scopes);
    const overLimit = writes ? this.rateLimits.countCall('write', principal, response) : undefined;
    if (overLimit) throw overLimit;
    const answer = await call(request, response, callWith(values));
    request.context.scope = scope;
    return answer;
  }
}
