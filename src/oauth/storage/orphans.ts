import { errors } from 'oidc-provider';

/**
 * What belongs to a grant, client or member that is gone (23503) cannot be stored: it was revoked meanwhile.
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
