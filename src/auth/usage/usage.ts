import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { addressOf } from '../../values/network.js';
import { GrantUsageRecorder } from '../access-tokens/grant-usage.js';
import { ApiKeyUsageRecorder } from '../api-keys/api-key-usage.js';
import { MemberUsageRecorder } from './member-usage.js';

/**
 * The one place that hears of each request that was answered with a credential, before its answer leaves: last use of keys and
 * grants, and what was used of a member, are counted from here. A request that is refused is no use.
 */
@Injectable()
export class Usage {
  constructor(
    private readonly keys: ApiKeyUsageRecorder,
    private readonly grants: GrantUsageRecorder,
    private readonly members: MemberUsageRecorder,
  ) {}

  /** Counts the request once it is answered. @param scope that it uses; null: nothing of the member's */
  watch({ context }: Request, scope: string | null): void {
    context.scope = scope;
    context.whenWritten = this.#written;
  }

  /** Writes all that was counted. */
  async flush(): Promise<void> {
    await Promise.all([this.keys.flush(), this.grants.flush(), this.members.flush()]);
  }

  /** One function for all requests: a closure of each would cost more than all that is done here. */
  readonly #written = (message: IncomingMessage, { statusCode }: ServerResponse): void => {
    const request = message as Request;
    const { principal, context } = request;
    if (principal === undefined || statusCode >= 400) return;
    if (principal.kind === 'api_key') this.keys.record(principal.credentialId, addressOf(request));
    else this.grants.record(principal.credentialId);
    if (principal.userId !== null && context.scope !== null) this.members.record(principal, context.scope);
  };
}
