import { escapeHtml } from '../values/string-rules.js';
import { tokenize } from './script/tokens.js';

/** Marks up code for the style sheet; unknown tokens stay unmarked. */
export function highlight(code: string): string {
  return tokenize(code)
    .map(({ kind, text }) =>
      kind === '' ? escapeHtml(text) : `<span class="${kind}">${escapeHtml(text)}</span>`,
    )
    .join('');
}
