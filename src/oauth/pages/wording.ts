const SEGMENTS = new Intl.Segmenter('en', { granularity: 'grapheme' });
/** Words of visible ASCII, with one space between them. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/;

/**
 * A stranger's text as one line of at most `longest` characters as readers count them. Characters that nobody sees or that turn
 * the direction of writing are left out: with them a name could pass for another.
 */
export function clip(text: string, longest: number): string {
  if (text.length <= longest && PLAIN.test(text)) return text; // most names: to find their characters takes 20 times as long
  const line = text
    .toWellFormed()
    .normalize('NFC')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/[\p{Cf}\p{Co}\p{Cn}]/gu, '')
    .trim();
  // One character can carry any number of marks.
  const characters = [...SEGMENTS.segment(line.slice(0, longest * 8))].map(({ segment }) =>
    [...segment].slice(0, 4).join(''),
  );
  return characters.length <= longest ? characters.join('') : `${characters.slice(0, longest - 1).join('')}…`;
}

/** The letter that stands for a name in its tile. */
export function initialOf(name: string): string {
  const [first] = clip(name, 50).match(/[\p{L}\p{N}]/u) ?? [];
  return (first ?? '?').toUpperCase().slice(0, 2);
}

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Writes a text so that HTML shows it as it is, in attributes too. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPED[character]!);
}

/** A stranger's text as HTML: short, and without a say in the direction of what stands around it. */
export function isolated(text: string, longest = 60): string {
  return `<bdi>${escapeHtml(clip(text, longest))}</bdi>`;
}

/** Fills in the placeholders of a text such as `Back to {app}`, as plain text. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
}

/** A text as it begins a sentence. */
export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** As {@link fill}, as HTML. @param values HTML themselves */
export function fillHtml(text: string, values: Readonly<Record<string, string | number>>): string {
  return fill(escapeHtml(text), values);
}
