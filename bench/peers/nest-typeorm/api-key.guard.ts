import { timingSafeEqual } from 'node:crypto';
import {
  ForbiddenException,
  Inject,
  Injectable,
  SetMetadata,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { DataSource } from 'typeorm';
import { readKey } from '../shared.mjs';
import { ApiKey } from './entities.js';

export const Scope = (scope: string) => SetMetadata('scope', scope);

export type MemberRequest = Request & { userId: number };

@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    @Inject(DataSource) private readonly dataSource: DataSource,
    @Inject(Reflector) private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<MemberRequest>();
    const key = readKey(request.get('x-api-key'));
    if (!key) throw new UnauthorizedException();
    const found = await this.dataSource
      .getRepository(ApiKey)
      .findOne({ where: { id: key.id }, relations: { user: true } });
    const valid =
      found &&
      timingSafeEqual(found.hash, key.hash) &&
      found.revoked_at === null &&
      (found.expires_at === null || found.expires_at > new Date()) &&
      found.user.disabled_at === null;
    if (!valid) throw new UnauthorizedException();
    const scope = this.reflector.getAllAndOverride<string>('scope', [
      context.getHandler(),
      context.getClass(),
    ]);
    if (!found.scopes.includes(scope)) throw new ForbiddenException();
    request.userId = found.user.id;
    return true;
  }
}
