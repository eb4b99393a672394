/**
 * Finds the class of a handler's parameter, as its signature names it: what a decorator of the parameter needs no one to say again.
 *
 * @throws Error where the signature names no class, or one that is imported as a type only
 */
export function classOfParameter(
  controller: object,
  handler: string | symbol,
  index: number,
): new () => object {
  const types = Reflect.getMetadata('design:paramtypes', controller, handler) as
    (new () => object)[] | undefined;
  const type = types?.[index];
  if (type === undefined || type === Object)
    throw new Error(`${controller.constructor.name}.${String(handler)}: parameter ${index} names no class`);
  return type;
}
