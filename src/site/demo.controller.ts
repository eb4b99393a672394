import { readdirSync, readFileSync } from 'node:fs';
import { Controller, Get, Param } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { Problem } from '../http/output/problems.js';
import { UnchangingDocument } from '../http/output/responses.js';
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
  page(): UnchangingDocument {
    return this.#page;
  }

  /** The redirect URI, from which the script reads the code. */
  @Get('callback')
  callback(): UnchangingDocument {
    return this.#page;
  }

  @Get('app.js')
  script(): UnchangingDocument {
    return this.#script;
  }

  @Get('app.css')
  style(): UnchangingDocument {
    return this.#style;
  }

  @Get('client/:file')
  client(@Param('file') name: string): UnchangingDocument {
    const file = this.#client.get(name);
    if (!file) throw new Problem('not_found');
    return file;
  }
}
