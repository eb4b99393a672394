/** What OpenID Connect says of a member (Core §5.1), from `users u`: in the ID token and at userinfo alike. */
export const CLAIMS =
  'u.id::text AS sub, u.username AS preferred_username, u.display_name AS name, u.profile_picture AS picture';

export type Claims = Record<'sub' | 'preferred_username' | 'name' | 'picture', string | null>;

/** Leaves out those that the member does not have: a claim is left out, never null (Core §5.3.2). */
export function presentClaims(claims: Claims): Partial<Claims> {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null));
}
