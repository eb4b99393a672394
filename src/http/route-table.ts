import { Injectable, RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/internal';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';

export interface Route {
  readonly method: string;
  /** Path with parameter names, such as `/api/public/events/:id`. */
  readonly path: string;
  readonly handler: (...parameters: never[]) => unknown;
  readonly controller: new (...parameters: never[]) => unknown;
}

/** The routes that the controllers' decorators declare. */
@Injectable()
export class RouteTable {
  #routes: readonly Route[] | undefined;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  get routes(): readonly Route[] {
    return (this.#routes ??= this.discovery.getControllers().flatMap(({ metatype, instance }) => {
      const prototype = Object.getPrototypeOf(instance) as Record<string, Route['handler']>;
      return this.scanner.getAllMethodNames(prototype).flatMap((name) => {
        const handler = prototype[name]!;
        const method = Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod | undefined;
        if (method === undefined) return [];
        const parts = [metatype!, handler].map((of) => Reflect.getMetadata(PATH_METADATA, of) as string);
        const path = `/${parts
          .flatMap((part) => part.split('/'))
          .filter(Boolean)
          .join('/')}`;
        return [
          { method: RequestMethod[method], path, handler, controller: metatype as Route['controller'] },
        ];
      });
    }));
  }

  /** Returns the HTTP methods of the routes at a path, with OPTIONS, and HEAD if one is GET; empty if there is no route. */
  methodsAt(path: string): string[] {
    const methods = this.routes
      .filter((route) => pathPattern(route.path).test(path))
      .map((route) => route.method);
    if (methods.length === 0) return [];
    return [...new Set([...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])];
  }
}

/** Makes a pattern for the whole path of a route. @param parameter pattern of a parameter such as `:id`; default: text without `/` */
export function pathPattern(path: string, parameter = '[^/]+'): RegExp {
  return new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:[A-Za-z]+/g, parameter)}$`);
}
