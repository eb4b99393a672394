import { Module, RequestMethod, type MiddlewareConsumer, type NestModule } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { AuthModule } from '../auth/auth.module.js';
import { credentialOf } from '../auth/principal.js';
import { missingCredentials } from '../auth/www-authenticate.js';
import { Config } from '../config/config.js';
import { ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import { Assistants } from './assistants.js';
import { McpController } from './mcp.controller.js';
import { Toolbox } from './toolbox.js';

/** The API for assistants, if ASSISTANTS is on. */
@Module({
  imports: [AuthModule],
  controllers: [McpController],
  providers: [Assistants, Toolbox],
})
export class McpModule implements NestModule {
  constructor(private readonly config: Config) {}

  /** Rejects a GET without a credential with the challenge, since some clients send this GET before their first message. */
  configure(consumer: MiddlewareConsumer): void {
    const { publicUrl } = this.config;
    consumer
      .apply((request: Request, _response: Response, next: NextFunction) => {
        if (credentialOf(request) === undefined) throw missingCredentials(publicUrl, request);
        next();
      })
      .forRoutes({ path: ASSISTANTS_PATH, method: RequestMethod.GET });
  }
}
