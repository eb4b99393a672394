import { Controller, Get } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { ALL_SCOPES } from '../auth/scopes.js';
import { FIRST_SCOPES, SUPPORTED_DPOP_ALGORITHMS } from '../auth/www-authenticate.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { Problem } from '../http/output/problems.js';
import { API_PREFIX, ASSISTANTS_PATH, RESOURCE_METADATA_PREFIX } from '../http/pipeline/api-headers.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { apiNameOf, Config } from '../config/config.js';

/** Publishes the resource metadata (RFC 9728 §3) of the API and of the assistants' endpoint. */
@Controller(RESOURCE_METADATA_PREFIX)
@Public()
@OutsideApi()
export class ProtectedResourceController {
  readonly #ofApi: UnchangingDocument;
  readonly #ofAssistants: UnchangingDocument | undefined;

  constructor(config: Config) {
    this.#ofApi = buildDocument(config, API_PREFIX, ALL_SCOPES);
    this.#ofAssistants = config.assistants ? buildDocument(config, ASSISTANTS_PATH, FIRST_SCOPES) : undefined;
  }

  @Get(API_PREFIX)
  read(): UnchangingDocument {
    return this.#ofApi;
  }

  @Get(ASSISTANTS_PATH)
  readOfAssistants(): UnchangingDocument {
    if (!this.#ofAssistants) throw new Problem('not_found');
    return this.#ofAssistants;
  }
}

function buildDocument(config: Config, path: string, scopes: readonly string[]): UnchangingDocument {
  const metadata = {
    resource: config.publicUrl + path,
    authorization_servers: [config.publicUrl],
    scopes_supported: scopes,
    bearer_methods_supported: ['header'],
    resource_name: apiNameOf(config),
    dpop_signing_alg_values_supported: SUPPORTED_DPOP_ALGORITHMS,
  };
  return new UnchangingDocument(JSON.stringify(metadata), {
    'Access-Control-Allow-Origin': '*',
    'Cache-Control': 'public, max-age=300',
    'Content-Type': 'application/json; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  });
}
