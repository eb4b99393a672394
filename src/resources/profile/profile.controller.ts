import { Controller, Get, Headers, Put, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { JsonBody } from '../../http/input/body.js';
import { RequestHeader, RespondsWith, RespondsWithProblems } from '../../http/output/openapi.js';
import { LOCK_PATIENCE_MS } from '../../database/database.js';
import { confirmCredential } from '../../http/pipeline/request-context.js';
import { extendDeadline } from '../../http/pipeline/response-deadline.js';
import { Me, Profile, ProfileChanges, ProfileUpdated } from './profile.dto.js';
import { ProfileService } from './profile.service.js';

@Controller('api/public')
export class ProfileController {
  constructor(private readonly profiles: ProfileService) {}

  @Get('me')
  @RequireScopes('profile:read')
  @RespondsWith(
    'Get the member',
    Me,
    'The member, including first and last name, which can be changed. The cheapest request to find the owner of a credential.',
  )
  getMe(@CurrentPrincipal() { userId }: Principal): Promise<Me> {
    return this.profiles.me(userId);
  }

  @Get('profile')
  @RequireScopes('profile:read')
  @RespondsWith(
    'Get the profile',
    Profile,
    'The part of the profile that other members see, and the numbers of achievements and connections. Each number equals `pagination.total` of its list.',
  )
  getProfile(@CurrentPrincipal() { userId }: Principal): Promise<JsonResponse> {
    return this.profiles.profile(userId);
  }

  @Put('profile')
  @RequireScopes('profile:write')
  @RespondsWith(
    'Update the profile',
    ProfileUpdated,
    'Only included fields change; `null` clears a field, `""` is stored as an empty text. If fields are invalid, the response lists all of them, and nothing is saved. With `If-Match`, the request does not overwrite changes that others made in the meantime.',
  )
  @RequestHeader('If-Match', 'ETag of GET /profile')
  @RespondsWithProblems('precondition_failed')
  updateProfile(
    @CurrentPrincipal() principal: Principal,
    @Req() request: Request,
    @Headers('if-match') ifMatch: string | undefined,
    @JsonBody(Profile) changes: ProfileChanges,
  ): Promise<JsonResponse> {
    extendDeadline(request, LOCK_PATIENCE_MS);
    return this.profiles.update(principal, changes, ifMatch, () => confirmCredential(request));
  }
}
