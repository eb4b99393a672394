import { errors } from 'oidc-provider';

/**
 * Refuses to store a row whose grant, client or member is gone (23503): it was revoked in the meantime.
 *
 * @throws InvalidGrant in that case, and otherwise what `write` throws
 */
export async function refusingOrphans<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const { code, driverError } = error as { code?: string; driverError?: { code?: string } };
    if ((code ?? driverError?.code) !== '23503') throw error;
    throw new errors.InvalidGrant('the grant was revoked');
  }
}
