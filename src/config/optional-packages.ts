/** Packages that only development has a use for. The image that Dockerfile makes is without them. */
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
