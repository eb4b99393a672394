import { readdirSync, readFileSync } from 'node:fs';
import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { Problem } from '../http/output/problems.js';
import { UnchangingDocument } from '../http/output/unchanging-document.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

const FOLDER = new URL('../../../examples/browser-client/', import.meta.url);
/** The built client library. */
const CLIENT = new URL('../../clients/typescript/src/', import.meta.url);

function fileOf(name: string, type: string, folder = FOLDER): UnchangingDocument {
  return new UnchangingDocument(readFileSync(new URL(name, folder)), {
    ...HEADERS,
    'Content-Type': `text/${type}; charset=utf-8`,
  });
}

/** The demo app of `examples/browser-client`, if there are demo members; only in development. */
@Controller('demo')
@Public()
@OutsideApi()
export class DemoController {
  readonly #page = fileOf('index.html', 'html');
  readonly #script = fileOf('app.js', 'javascript');
  readonly #style = fileOf('app.css', 'css');
  readonly #client = new Map(
    readdirSync(CLIENT)
      .filter((name) => name.endsWith('.js'))
      .map((name) => [name, fileOf(name, 'javascript', CLIENT)]),
  );

  @Get()
  page(@Req() request: Request, @Res() response: Response): void {
    this.#page.send(request, response);
  }

  /** The redirect URI, from which the script reads the code. */
  @Get('callback')
  callback(@Req() request: Request, @Res() response: Response): void {
    this.#page.send(request, response);
  }

  @Get('app.js')
  script(@Req() request: Request, @Res() response: Response): void {
    this.#script.send(request, response);
  }

  @Get('app.css')
  style(@Req() request: Request, @Res() response: Response): void {
    this.#style.send(request, response);
  }

  @Get('client/:file')
  client(@Req() request: Request, @Res() response: Response, @Param('file') name: string): void {
    const file = this.#client.get(name);
    if (!file) throw new Problem('not_found');
    file.send(request, response);
  }
}
