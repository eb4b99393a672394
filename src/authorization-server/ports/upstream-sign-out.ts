/** What the authorization server needs of the platform's own login: that members are signed out there, too. */
export abstract class UpstreamSignOut {
  /** Origins, besides the app's, to which a sign-out form may lead. */
  abstract readonly formTargets: string[];

  /**
   * Gives the provider's sign-out URL for a member whose session was just ended.
   *
   * @param target where the member would go otherwise: a registered URL, or undefined for the page that confirms the sign-out
   * @returns undefined if there is no session at the provider to end
   */
  abstract addressFor(target?: string): Promise<string | undefined>;
}
