import { readdirSync, readFileSync } from 'node:fs';
import { Controller, Get, Param } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { Problem } from '../http/output/problems.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { InlineText } from '../layout/layout.js';

const FOLDER = new URL('../../../examples/browser-client/', import.meta.url);
const CLIENT = new URL('../../clients/typescript/src/', import.meta.url);

const textOf = (name: string, folder = FOLDER) => readFileSync(new URL(name, folder), 'utf8');

/** Serves the demo app of `examples/browser-client`, only on a server with demo members (SEED_DEMO). */
@Controller('demo')
@Public()
@OutsideApi()
export class DemoController {
  readonly #style = new InlineText(textOf('app.css'));
  readonly #headers = {
    'Content-Security-Policy': `default-src 'none'; script-src 'self'; style-src ${this.#style.source}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'X-Frame-Options': 'DENY',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
  };
  readonly #page = this.#document(
    textOf('index.html').replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${this.#style.text}</style>`),
    'html',
  );
  readonly #script = this.#document(textOf('app.js'), 'javascript');
  readonly #client = new Map(
    readdirSync(CLIENT)
      .filter((name) => name.endsWith('.js'))
      .map((name) => [name, this.#document(textOf(name, CLIENT), 'javascript')]),
  );

  @Get()
  page(): UnchangingDocument {
    return this.#page;
  }

  /** The demo app's redirect URI; the page's script reads the code from it. */
  @Get('callback')
  callback(): UnchangingDocument {
    return this.#page;
  }

  @Get('app.js')
  script(): UnchangingDocument {
    return this.#script;
  }

  @Get('client/:file')
  client(@Param('file') name: string): UnchangingDocument {
    const file = this.#client.get(name);
    if (!file) throw new Problem('not_found');
    return file;
  }

  #document(text: string, type: string): UnchangingDocument {
    return new UnchangingDocument(text, { ...this.#headers, 'Content-Type': `text/${type}; charset=utf-8` });
  }
}
