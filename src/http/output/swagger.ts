import type * as swaggerModule from '@nestjs/swagger';
import { lazily } from '../../values/lazily.js';

export type Swagger = typeof swaggerModule;
type Decorator = (target: object, name?: string | symbol, method?: PropertyDescriptor) => void;

const decorations: ((swagger: Swagger) => void)[] = [];

/**
 * Loads Nest’s package for OpenAPI, and applies its decorators to what was declared so far. It brings 500 modules, which take
 * 0.1 to 0.2 s of a start and 5 MB of heap in each process, and most processes are never asked for a document.
 */
export const loadSwagger = lazily(async (): Promise<Swagger> => {
  const swagger = await import('@nestjs/swagger');
  for (const decorate of decorations.splice(0)) decorate(swagger);
  return swagger;
});

/** The decorator of this name, applied in {@link loadSwagger}, in the order in which classes are decorated. */
function deferred<Name extends keyof Swagger>(name: Name): Swagger[Name] {
  const factory =
    (...options: unknown[]): Decorator =>
    (...target) => {
      decorations.push((loaded) =>
        (loaded[name] as unknown as (...options: unknown[]) => Decorator)(...options)(...target),
      );
    };
  return factory as unknown as Swagger[Name];
}

export const ApiBody = deferred('ApiBody');
export const ApiConsumes = deferred('ApiConsumes');
export const ApiExcludeController = deferred('ApiExcludeController');
export const ApiExtraModels = deferred('ApiExtraModels');
export const ApiOkResponse = deferred('ApiOkResponse');
export const ApiOperation = deferred('ApiOperation');
export const ApiParam = deferred('ApiParam');
export const ApiProperty = deferred('ApiProperty');
export const ApiPropertyOptional = deferred('ApiPropertyOptional');

const names = new WeakMap<object, string>();

/** Names the class among the schemas of the document. */
export function ApiSchema({
  name,
  ...options
}: {
  readonly name: string;
  readonly description?: string;
}): ClassDecorator {
  const decorate = deferred('ApiSchema')({ name, ...options });
  return (model) => {
    names.set(model, name);
    decorate(model);
  };
}

/** The address of a class's schema within the document. */
export function getSchemaPath(model: new () => object): string {
  return `#/components/schemas/${names.get(model) ?? model.name}`;
}
