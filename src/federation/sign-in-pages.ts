/** Pages of a member's account. */
export const ACCOUNT_PAGES = [
  'apps',
  'sessions',
  'security',
  'activity',
  'keys',
  'calendar',
  'data',
] as const;

/** Pages for developers; they exist only with DEVELOPER_CONSOLE. */
export const DEVELOPER_PAGES = ['developer', 'developer/new-key'] as const;

/** Pages on which a member can sign in. */
export type SignInPage = (typeof ACCOUNT_PAGES)[number] | (typeof DEVELOPER_PAGES)[number];

/** Gives the path of such a page. */
export function pathOf(page: SignInPage): string {
  return page.startsWith('developer') ? `/${page}` : `/account/${page}`;
}
