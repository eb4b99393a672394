/** What only development has a use for: the image of Dockerfile is without them. */
export type OptionalPackage = '@electric-sql/pglite' | 'pino-pretty';

/** Tells whether the package is there. */
export function isInstalled(name: OptionalPackage): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
