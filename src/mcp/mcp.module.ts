import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { Assistants } from './assistants.js';
import { McpController } from './mcp.controller.js';
import { RouteCalls } from '../http/route-calls.js';
import { Toolbox } from './toolbox.js';

/** The API for assistants, if ASSISTANTS is on. */
@Module({
  imports: [AuthModule],
  controllers: [McpController],
  providers: [Assistants, RouteCalls, Toolbox],
})
export class McpModule {}
