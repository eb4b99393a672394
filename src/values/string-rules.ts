/** Tells whether PostgreSQL can store the text: no U+0000, no lone surrogate. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Tells whether the text is one e-mail address to which mail can be sent, and contains nothing that could be another header or address. */
export function isEmailAddress(text: string): boolean {
  return (
    text.length <= 254 &&
    /^[^\s@<>()[\]:;,\\"\p{Cc}\p{Cf}]{1,64}@[^\s@<>()[\]:;,\\"\p{Cc}\p{Cf}]{1,189}$/u.test(text) &&
    text.isWellFormed()
  );
}

/** Tells whether the text is an address, or a name with one in angle brackets (RFC 5322 §3.4). */
export function isMailbox(text: string): boolean {
  const [, address = text] = /^[^<>"@,;:\\\p{Cc}]{1,100} <([^<>]+)>$/u.exec(text) ?? [];
  return isEmailAddress(address);
}

/** Tells whether a URL is absolute, http or https, without user and password; as written: `new URL` alone would also take `http:evil.com`, white space and back slashes. */
export function isHttpUrl(text: string): boolean {
  return /^https?:\/\/[^/?#@\\\s\p{Cc}]+([/?#][^\\\s\p{Cc}]*)?$/iu.test(text) && URL.canParse(text);
}

/** Tells whether a request's id, which its caller may choose (X-Request-Id), could be a token or a key of ours. */
export function looksSecret(errorId: string): boolean {
  return /^[\w-]{43}$/.test(errorId) || /pua_(live|test|secret)_/i.test(errorId);
}

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

/** Removes Unicode white space at both ends: keyboards of phones add a space after a name that they complete. */
export function trimmed(text: string): string {
  // Linear: a run of white space is tried at its start only.
  return text.replace(
    /^[\p{White_Space}\ufeff]+|(?<![\p{White_Space}\ufeff])[\p{White_Space}\ufeff]+$/gu,
    '',
  );
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

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for HTML, including attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
