import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Controller, Get, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { Problem } from '../http/output/problems.js';
import { redirectTo, UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';

const FOLDER = join(import.meta.dirname, '../../packages');
const TYPES: Readonly<Record<string, string>> = {
  '.tgz': 'application/gzip',
  '.whl': 'application/zip',
  '.zip': 'application/zip',
  '.info': 'application/json',
};

/** Serves the built client packages: files for npm and pip, and a Go proxy for one module. */
@Controller('clients')
@Public()
@OutsideApi()
export class PackagesController {
  /** Files by path below /clients. */
  readonly #files = new Map(
    readdirSync(FOLDER, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.draft'))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path.slice(FOLDER.length + 1), readPackage(path)]),
  );
  readonly #wheel = [...this.#files.keys()].find((path) => path.endsWith('.whl'))!;

  /** Redirects to the wheel, since pip requires the wheel's full file name. */
  @Get('python.whl')
  wheel(@Res() response: Response): void {
    redirectTo(response, 302, `/clients/${this.#wheel}`);
  }

  /** @throws Problem not_found */
  @Get(':file')
  file(@Param('file') name: string): UnchangingDocument {
    const file = this.#files.get(name);
    if (!file) throw new Problem('not_found');
    return file;
  }

  /** Serves files of the Go module. @throws Problem not_found for other modules, which Go then requests from the next proxy */
  @Get('go/:host/:name/@v/:file')
  module(@Param() { host, name, file }: Record<string, string>): UnchangingDocument {
    return this.file(`go/${host}/${name}/@v/${file}`);
  }
}

function readPackage(path: string): UnchangingDocument {
  return new UnchangingDocument(readFileSync(path), {
    'Content-Type': TYPES[extname(path)] ?? 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-cache',
  });
}
