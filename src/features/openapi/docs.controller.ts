import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Eta } from 'eta';
import type { Request, Response } from 'express';
import { Public } from '../../auth/auth.decorators.js';
import { SCOPES } from '../../auth/scopes.js';
import { Produces } from '../../http/pipeline/accept.guard.js';
import { PROBLEMS } from '../../http/output/problems.js';
import { UnchangingDocument } from '../../http/output/unchanging-document.js';
import { OpenApiDocument } from './openapi-document.js';
import { endpointsOf } from './reference.js';
import { Config } from '../../config/config.js';
import { sha256 } from '../../crypto/digests.js';

const TEMPLATES = new URL('./templates/', import.meta.url);

/** The reference for people: one page without script, made from the OpenAPI document and the table of problems. */
@Controller('docs')
@Public()
@ApiExcludeController()
export class DocsController {
  #page: UnchangingDocument | undefined;
  readonly #style = readFileSync(new URL('style.css', TEMPLATES), 'utf8');
  readonly #headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${sha256(this.#style, 'base64')}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
  };

  constructor(
    private readonly config: Config,
    private readonly document: OpenApiDocument,
  ) {}

  @Get()
  @Produces('text/html')
  read(@Req() request: Request, @Res() response: Response): void {
    this.#page ??= new UnchangingDocument(this.#render(), this.#headers);
    this.#page.send(request, response);
  }

  #render(): string {
    const { publicUrl, rateLimits, seedDemo } = this.config;
    const eta = new Eta({ views: fileURLToPath(TEMPLATES), autoEscape: true });
    return eta.render('./reference', {
      style: this.#style,
      publicUrl,
      rateLimits,
      demo: seedDemo,
      scopes: Object.entries(SCOPES),
      endpoints: endpointsOf(this.document.read()),
      problems: [...PROBLEMS.values()],
      // Descriptions have `code` as Markdown does.
      prose: (text: string) => eta.config.escapeFunction(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>'),
    });
  }
}
