/** Tells whether PostgreSQL can store the text: no U+0000, no lone surrogate. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Tells whether the text is one email address, and cannot add a header or another address to an email. */
export function isEmailAddress(text: string): boolean {
  return (
    text.length <= 254 &&
    /^[^\s@<>()[\]:;,\\"\p{Cc}\p{Cf}]{1,64}@[^\s@<>()[\]:;,\\"\p{Cc}\p{Cf}]{1,189}$/u.test(text) &&
    text.isWellFormed()
  );
}

/** Tells whether the text is an email address, or a name with an address in angle brackets (RFC 5322 §3.4). */
export function isMailbox(text: string): boolean {
  const [, address = text] = /^[^<>"@,;:\\\p{Cc}]{1,100} <([^<>]+)>$/u.exec(text) ?? [];
  return isEmailAddress(address);
}

/** Tells whether a text is an absolute http or https URL without user and password. `new URL` also accepts `http:evil.com`, spaces, `\`. */
export function isHttpUrl(text: string): boolean {
  return /^https?:\/\/[^/?#@\\\s\p{Cc}]+([/?#][^\\\s\p{Cc}]*)?$/iu.test(text) && URL.canParse(text);
}

/** Words of visible ASCII with single spaces: names that match need no normalization. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/;
const SPACE = /[\s\p{Cc}\u2800]+/gu;
/** Invisible and bidirectional characters; U+FE0F counts as visible only after an emoji. */
const UNSEEN = /[\p{Cf}\p{Co}\p{Cn}]|(?!\ufe0f)\p{Default_Ignorable_Code_Point}|(?<!\p{ExtPict})\ufe0f/gu;

/** Returns the visible form of a name or short text: one line, without invisible characters. */
export function asShown(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.toWellFormed().replace(UNSEEN, '').normalize('NFC').replace(SPACE, ' ').trim();
}

/** Removes Unicode white space at both ends: phone keyboards append a space to completed names. */
export function trimmed(text: string): string {
  // Linear time: the lookbehind tries a run of white space only at its start.
  return text.replace(
    /^[\p{White_Space}\ufeff]+|(?<![\p{White_Space}\ufeff])[\p{White_Space}\ufeff]+$/gu,
    '',
  );
}

/** Tells whether a text may be a name: not empty, not too long, and unchanged by {@link asShown}. @param longest in code points */
export function isName(text: string, longest = 100): boolean {
  return text !== '' && asShown(text) === text && (text.length <= longest || [...text].length <= longest);
}

/** Makes a name from any text; the name is empty if the text has no visible character. @param longest in code points */
export function nameFrom(text: string, longest = 100): string {
  return [...asShown(text)].slice(0, longest).join('').trimEnd();
}

/** Rule of {@link isName}, as text that follows "must". */
export const NAME_RULE = 'have no control or invisible characters or extra spaces';

/** Rule of {@link isUsername}, except the length, as text that follows "must". */
export const USERNAME_RULE = `${NAME_RULE}, be NFKC, and not be digits or erased-<digits>`;

/** Commands treat digits as an id, and erased members have the name `erased-<id>`. */
const RESERVED = /^(erased-)?\d+$/i;

/** Tells whether a text may be a username: a name in NFKC that is not reserved. */
export function isUsername(text: string): boolean {
  return isName(text) && text.normalize('NFKC') === text && !RESERVED.test(text);
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
