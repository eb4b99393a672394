import { createParamDecorator, SetMetadata, type ExecutionContext } from '@nestjs/common';
import type { Caller } from './principal.js';
import type { PlatformScope, Scope } from './scopes.js';
import { requestOf } from '../http/pipeline/request-context.js';

/** A route's requirement: a scope, any member's credential (`null`), or no credential (`public`). */
export type Access = Scope | PlatformScope | null | 'public';

export const ACCESS = 'auth:access';

/** Requires a credential with this scope; a method's scope overrides the class's. Platform scopes admit only platform keys. */
export const RequireScopes = (scope: Scope | PlatformScope) => SetMetadata(ACCESS, scope satisfies Access);

/** Requires a member's credential, regardless of its scopes. */
export const RequireCredential = () => SetMetadata(ACCESS, null satisfies Access);

/** Admits callers without a credential, and ignores any credential. */
export const Public = () => SetMetadata(ACCESS, 'public' satisfies Access);

/** Injects a member's `Principal`, or a `PlatformPrincipal` on platform routes. Public routes have none. */
export const CurrentPrincipal = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return requestOf(context).principal!;
});
