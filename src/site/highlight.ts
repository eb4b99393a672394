import { escapeHtml } from '../values/string-rules.js';
import { tokenize } from './script/tokens.js';

/** Returns code as HTML, with a `<span>` around each token that has a class. */
export function highlight(code: string): string {
  return tokenize(code)
    .map(({ kind, text }) =>
      kind === '' ? escapeHtml(text) : `<span class="${kind}">${escapeHtml(text)}</span>`,
    )
    .join('');
}
