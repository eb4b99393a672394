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
  return /^[\w-]{43}$/.test(errorId) || /pua_(live|test)_/i.test(errorId);
}
