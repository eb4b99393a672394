import { Controller, Get, Headers, Put, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { readBody } from '../../http/input/body.js';
import { Answers } from '../../http/output/openapi.js';
import { Me, Profile, ProfileChanges, ProfileUpdated, READ_ONLY_FIELDS } from './profile.dto.js';
import { ProfileService } from './profile.service.js';

@Controller('api/public')
export class ProfileController {
  constructor(private readonly profiles: ProfileService) {}

  @Get('me')
  @RequireScopes('profile:read')
  @Answers('The member, in short', Me)
  me(@CurrentPrincipal() { userId }: Principal): Promise<Me> {
    return this.profiles.me(userId);
  }

  @Get('profile')
  @RequireScopes('profile:read')
  @Answers('The member’s profile with counts', Profile)
  profile(@CurrentPrincipal() { userId }: Principal): Promise<JsonResponse> {
    return this.profiles.profile(userId);
  }

  @Put('profile')
  @RequireScopes('profile:write')
  @Answers('Change the profile: only included fields change, null clears one', ProfileUpdated, {
    body: ProfileChanges,
  })
  async update(
    @CurrentPrincipal() { userId }: Principal,
    @Headers('if-match') ifMatch: string | undefined,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<JsonResponse> {
    const changes = await readBody(request, response, ProfileChanges, READ_ONLY_FIELDS);
    return this.profiles.update(userId, changes, ifMatch);
  }
}
