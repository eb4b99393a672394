const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Writes a text so that HTML shows it as it is. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}

/** Strings, comments, and in JSON numbers and words: what a reader looks for in a snippet. */
const TOKENS =
  /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)(\s*:)?|((?<![:\w])\/\/[^\n]*|(?<![\w&])#[^\n]*)|(?<![\w:./-])(true|false|null|-?\d+(?:\.\d+)?)\b/g;

/** Makes HTML of the code, with marks for the style sheet. Nothing is guessed: what is not a token stays as it is. */
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
