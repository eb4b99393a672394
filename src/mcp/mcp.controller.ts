import { Controller, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { RequireCredential } from '../auth/auth.decorators.js';
import type { Principal } from '../auth/principal.js';
import { isDeeperThan, rawReader, readJson } from '../http/input/body.js';
import { Problem } from '../http/output/problems.js';
import { ASSISTANTS_PATH } from '../http/pipeline/api-headers.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { Assistants, writeFault, type MessageAnswer } from './assistants.js';

/** Reads a body; the limit suffices for the longest profile with every character escaped. */
const readMessage = rawReader(131_072);
const DEEPEST = 32;

/** The API as a Model Context Protocol server: each message is one HTTP request; the server opens no streams. */
@Controller(ASSISTANTS_PATH)
@RequireCredential()
@OutsideApi()
export class McpController {
  constructor(private readonly assistants: Assistants) {}

  @Post()
  async receive(@Req() request: Request, @Res() response: Response): Promise<void> {
    const { status, headers = {}, text = '' } = await this.#answer(request, response);
    if (response.headersSent) return; // the deadline passed first
    for (const [name, value] of Object.entries(headers)) response.gather(name, value);
    const bytes = Buffer.from(text);
    if (text !== '') response.gather('Content-Type', 'application/json; charset=utf-8');
    response.gather('Content-Length', String(bytes.length));
    response.writeHead(status).end(bytes);
  }

  async #answer(request: Request, response: Response): Promise<MessageAnswer> {
    const body = await readJson(request, response, readMessage).catch((error: unknown) => {
      if (error instanceof Problem && error.definition.code === 'invalid_json') return undefined;
      throw error;
    });
    if (body === undefined) return writeFault(400, { code: -32_700, message: 'Parse error' });
    if (Array.isArray(body))
      return writeFault(400, {
        code: -32_600,
        message: 'Batches are not supported: send one message per request',
      });
    if (typeof body !== 'object' || body === null || isDeeperThan(body, DEEPEST))
      return writeFault(400, { code: -32_600, message: 'Invalid request' });
    const principal = request.principal as Principal;
    return this.assistants.answer(body, { request, response, principal });
  }
}
