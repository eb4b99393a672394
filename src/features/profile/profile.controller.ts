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
  @RespondsWith(
    'Get the member',
    Me,
    'Who the member is, with first and last name as they can be changed. The cheapest call that tells whose credential this is.',
  )
  getMe(@CurrentPrincipal() { userId }: Principal): Promise<Me> {
    return this.profiles.me(userId);
  }

  @Get('profile')
  @RequireScopes('profile:read')
  @RespondsWith(
    'Get the profile',
    Profile,
    'What others see of the member, with the numbers of their achievements and connections: always those that the two lists give as `pagination.total`.',
  )
  getProfile(@CurrentPrincipal() { userId }: Principal): Promise<JsonResponse> {
    return this.profiles.profile(userId);
  }

  @Put('profile')
  @RequireScopes('profile:write')
  @RespondsWith(
    'Update the profile',
    ProfileUpdated,
    'Only included fields change; `null` clears one, `""` is stored as it is. Everything that is wrong with the body is named in one response, and then nothing is saved. With `If-Match`, nothing that somebody else has changed meanwhile is overwritten.',
  )
  @RespondsWithProblems('precondition_failed')
  updateProfile(
    @CurrentPrincipal() principal: Principal,
    @Headers('if-match') ifMatch: string | undefined,
    @JsonBody() changes: ProfileChanges,
  ): Promise<JsonResponse> {
    return this.profiles.update(principal, changes, ifMatch);
  }
}
