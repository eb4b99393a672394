/** Packages that only development needs: `npm ci --omit=dev` leaves them out. */
type OptionalPackage = '@electric-sql/pglite' | 'pino-pretty';

/** Tells whether the package is there. */
export function isInstalled(name: OptionalPackage): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
