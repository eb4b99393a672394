/**
 * Finds the class of a handler's parameter from its signature, so that a decorator need not repeat it.
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
