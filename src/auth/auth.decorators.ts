import { createParamDecorator, SetMetadata, type ExecutionContext } from '@nestjs/common';
import type { Caller } from './principal.js';
import type { PlatformScope, Scope } from './scopes.js';
import { requestOf } from '../http/pipeline/request-context.js';

/** What a route demands: a scope, any valid credential (`null`), or nothing (`public`). */
export type Access = Scope | PlatformScope | null | 'public';

export const ACCESS = 'auth:access';

/** The route needs a credential with this scope; on a method, it overrides the class. Platform scopes admit only platform keys. */
export const RequireScopes = (scope: Scope | PlatformScope) => SetMetadata(ACCESS, scope satisfies Access);

/** The route needs a valid credential of a member, whatever its scopes. */
export const RequireCredential = () => SetMetadata(ACCESS, null satisfies Access);

/** Opens the route to callers without a credential, and ignores any that is sent. Nothing else opens a route. */
export const Public = () => SetMetadata(ACCESS, 'public' satisfies Access);

/** The caller: a member's `Principal`, or a `PlatformPrincipal` on platform routes. Only for routes that need a credential. */
export const CurrentPrincipal = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return requestOf(context).principal!;
});
