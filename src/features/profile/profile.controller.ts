import { Controller, Get, Headers, Put } from '@nestjs/common';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { JsonBody } from '../../http/input/body.js';
import { RespondsWith, RespondsWithProblems } from '../../http/output/openapi.js';
import { Me, Profile, ProfileChanges, ProfileUpdated } from './profile.dto.js';
import { ProfileService } from './profile.service.js';

@Controller('api/public')
export class ProfileController {
  constructor(private readonly profiles: ProfileService) {}

  @Get('me')
  @RequireScopes('profile:read')
  @RespondsWith('The member, in short', Me)
  me(@CurrentPrincipal() { userId }: Principal): Promise<Me> {
    return this.profiles.me(userId);
  }

  @Get('profile')
  @RequireScopes('profile:read')
  @RespondsWith('The member’s profile with counts', Profile)
  profile(@CurrentPrincipal() { userId }: Principal): Promise<JsonResponse> {
    return this.profiles.profile(userId);
  }

  @Put('profile')
  @RequireScopes('profile:write')
  @RespondsWith('Change the profile: only included fields change, null clears one', ProfileUpdated)
  @RespondsWithProblems('precondition_failed')
  update(
    @CurrentPrincipal() { userId }: Principal,
    @Headers('if-match') ifMatch: string | undefined,
    @JsonBody() changes: ProfileChanges,
  ): Promise<JsonResponse> {
    return this.profiles.update(userId, changes, ifMatch);
  }
}
