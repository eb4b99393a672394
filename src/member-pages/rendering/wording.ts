import { escapeHtml } from '../../values/html.js';
import { asShown } from '../../values/names.js';

const SEGMENTS = new Intl.Segmenter('en', { granularity: 'grapheme' });

/**
 * Reduces untrusted text to one line of at most `longest` user-perceived characters. Invisible characters and those that change the
 * writing direction are removed: with them, one name could pass for another.
 */
export function clip(text: string, longest: number): string {
  const line = asShown(text);
  if (line.length <= longest && /^[ -~]*$/.test(line)) return line; // segmenting takes 20 times as long
  // One character can carry any number of combining marks.
  const characters = [...SEGMENTS.segment(line.slice(0, longest * 8))].map(({ segment }) =>
    [...segment].slice(0, 4).join(''),
  );
  return characters.length <= longest ? characters.join('') : `${characters.slice(0, longest - 1).join('')}…`;
}

/** Gives the letter shown in a name's tile. */
export function initialOf(name: string): string {
  const [first] = clip(name, 50).match(/[\p{L}\p{N}]/u) ?? [];
  return (first ?? '?').toUpperCase().slice(0, 2);
}

/** Writes untrusted text as HTML: clipped, and isolated so that its writing direction does not affect its surroundings. */
export function isolated(text: string, longest = 60): string {
  return `<bdi>${escapeHtml(clip(text, longest))}</bdi>`;
}

/** Fills in the placeholders of a plain text such as `Back to {app}`. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
}

/** Capitalizes a text for the start of a sentence. */
export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Like {@link fill}, but gives HTML. @param values HTML themselves */
export function fillHtml(text: string, values: Readonly<Record<string, string | number>>): string {
  return fill(escapeHtml(text), values);
}
