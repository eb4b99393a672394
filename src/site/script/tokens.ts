/** Strings, comments, numbers, and `true`, `false` and `null`. */
const TOKENS =
  /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)(\s*:)?|((?<![:\w])\/\/[^\n]*|(?<![\w&])#[^\n]*)|(?<![\w:./-])(true|false|null|-?\d+(?:\.\d+)?)\b/g;

/** `kind`: the class for the style sheet; may be empty. */
export interface Token {
  readonly kind: '' | 't-key' | 't-text' | 't-word' | 't-comment';
  readonly text: string;
}

/** Splits code into tokens, whose texts together are the code. */
export function tokenize(code: string): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  for (const match of code.matchAll(TOKENS)) {
    const [whole, quoted, colon, comment] = match;
    const kind =
      quoted === undefined
        ? comment === undefined
          ? 't-word'
          : 't-comment'
        : colon === undefined
          ? 't-text'
          : 't-key';
    const text = quoted ?? whole;
    tokens.push({ kind: '', text: code.slice(end, match.index) }, { kind, text });
    end = match.index + text.length;
  }
  tokens.push({ kind: '', text: code.slice(end) });
  return tokens.filter(({ text }) => text !== '');
}
