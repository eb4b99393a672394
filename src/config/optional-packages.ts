/** Packages that only development needs. The image that Dockerfile builds does not contain them. */
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
