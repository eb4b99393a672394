import { escapeHtml } from '../values/string-rules.js';

/** Strings, comments, numbers and JSON's words: what a reader looks for in a snippet. */
const TOKENS =
  /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)(\s*:)?|((?<![:\w])\/\/[^\n]*|(?<![\w&])#[^\n]*)|(?<![\w:./-])(true|false|null|-?\d+(?:\.\d+)?)\b/g;

/** Marks up code for the style sheet. Anything that is not a known token is left unmarked. */
export function highlight(code: string): string {
  let html = '';
  let end = 0;
  for (const match of code.matchAll(TOKENS)) {
    const [whole, text, colon, comment] = match;
    html += escapeHtml(code.slice(end, match.index));
    end = match.index + whole.length;
    if (text !== undefined) {
      const kind = colon === undefined ? 'text' : 'key';
      html += `<span class="t-${kind}">${escapeHtml(text)}</span>${colon ?? ''}`;
    } else {
      html += `<span class="t-${comment === undefined ? 'word' : 'comment'}">${escapeHtml(whole)}</span>`;
    }
  }
  return html + escapeHtml(code.slice(end));
}
