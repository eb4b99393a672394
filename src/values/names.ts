/** Words of visible ASCII, separated by single spaces: most names, and testing for them takes a twentieth of the time. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/;
const SPACE = /[\s\p{Cc}\u2800]+/gu;
/** What nobody sees, or turns the writing around. A variation selector is seen on an emoji alone. */
const UNSEEN = /[\p{Cf}\p{Co}\p{Cn}]|(?!\ufe0f)\p{Default_Ignorable_Code_Point}|(?<!\p{ExtPict})\ufe0f/gu;

/** Gives a name, or another short text that somebody chose, as everybody is shown it: in one line, with nothing invisible in it. */
export function asShown(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.toWellFormed().replace(UNSEEN, '').normalize('NFC').replace(SPACE, ' ').trim();
}

/**
 * Tells whether a text may be the name of something: it is stored as it is shown, so that none passes for another by what nobody
 * sees. Spaces in it are single, and in neither first nor last place.
 *
 * @param longest in code points
 */
export function isName(text: string, longest = 100): boolean {
  return text !== '' && asShown(text) === text && (text.length <= longest || [...text].length <= longest);
}

/** Makes a name of what somebody wrote; empty where nothing of it is seen. @param longest in code points */
export function nameFrom(text: string, longest = 100): string {
  return [...asShown(text)].slice(0, longest).join('').trimEnd();
}

/** What {@link isName} requires; follows "must". */
export const NAME_RULE = 'have no control or invisible characters, and no superfluous spaces';

/** What {@link isUsername} requires besides its length; follows "must". */
export const USERNAME_RULE = `${NAME_RULE}, and be in the Unicode form NFKC`;

/** Tells whether a text may be a username, which members are told apart by: also none that only looks like another (NFKC). */
export function isUsername(text: string): boolean {
  return isName(text) && text.normalize('NFKC') === text;
}
