import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import { apiNameOf, Config } from '../../config/config.js';
import { JsonResponse } from '../../http/output/json-response.js';
import { RespondsWith } from '../../http/output/openapi.js';
import { lazily } from '../../values/lazily.js';
import { OpenApiDocument } from './openapi-document.js';
import { postmanCollection } from './postman.js';
import { endpointsOf } from './reference.js';

/** The description of the API for programs. */
@Controller('api/public')
@Public()
export class OpenApiController {
  readonly #collection = lazily(async () =>
    JsonResponse.unchanging(
      postmanCollection(
        apiNameOf(this.config),
        this.config.publicUrl,
        endpointsOf(await this.document.read()),
      ),
    ),
  );

  constructor(
    private readonly config: Config,
    private readonly document: OpenApiDocument,
  ) {}

  @Get('openapi.json')
  @RespondsWith(
    'Get this document',
    { schema: { type: 'object' }, models: [] },
    'The OpenAPI 3.1 document of the running server, for client generators and test tools.',
  )
  getOpenApi(): Promise<JsonResponse> {
    return this.document.answer();
  }

  @Get('postman.json')
  @RespondsWith(
    'Get a Postman collection',
    { schema: { type: 'object' }, models: [] },
    'Every call with its parameters and responses, for import into Postman, Insomnia or Bruno.',
  )
  getPostmanCollection(): Promise<JsonResponse> {
    return this.#collection();
  }
}

/** The same for the platform's backend. */
@Controller('api/platform')
@Public()
export class PlatformOpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get('openapi.json')
  @RespondsWith(
    'Get the platform’s document',
    { schema: { type: 'object' }, models: [] },
    'The OpenAPI 3.1 document of the calls for the platform’s backend.',
  )
  getPlatformOpenApi(): Promise<JsonResponse> {
    return this.document.platformAnswer();
  }
}
