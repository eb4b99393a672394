// Plain NestJS with TypeORM repositories, a guard and ClassSerializerInterceptor: as its documentation shows it.
import 'reflect-metadata';
import {
  BadRequestException,
  ClassSerializerInterceptor,
  Controller,
  Get,
  Inject,
  Module,
  Query,
  Req,
  UseGuards,
} from '@nestjs/common';
import { APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { DATABASE_URL, POOL_SIZE, PORT } from '../shared.mjs';
import { ApiKeyGuard, Scope, type MemberRequest } from './api-key.guard.js';
import { ENTITIES } from './entities.js';
import { MemberService } from './member.service.js';

@Controller('api/public')
@UseGuards(ApiKeyGuard)
class MemberController {
  constructor(@Inject(MemberService) private readonly members: MemberService) {}

  @Get('profile')
  @Scope('profile:read')
  profile(@Req() { userId }: MemberRequest) {
    return this.members.profile(userId);
  }

  @Get('events')
  @Scope('events:read')
  events(@Req() { userId }: MemberRequest) {
    return this.members.events(userId);
  }

  @Get('connections')
  @Scope('connections:read')
  connections(@Req() { userId }: MemberRequest) {
    return this.members.connections(userId);
  }

  @Get('achievements')
  @Scope('achievements:read')
  achievements(@Req() { userId }: MemberRequest, @Query('action') action?: string): Promise<object> {
    if (action === undefined) return this.members.achievements(userId);
    if (action === 'stats') return this.members.statistics(userId);
    throw new BadRequestException();
  }
}

@Module({
  controllers: [MemberController],
  providers: [
    {
      provide: DataSource,
      useFactory: () =>
        new DataSource({
          type: 'postgres',
          url: DATABASE_URL!,
          entities: ENTITIES,
          parseInt8: true,
          poolSize: POOL_SIZE,
        }).initialize(),
    },
    MemberService,
    { provide: APP_INTERCEPTOR, useClass: ClassSerializerInterceptor },
  ],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error'] });
await app.listen(Number(PORT), '127.0.0.1');
