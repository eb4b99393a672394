import fc from 'fast-check';
import { describe, expect, it } from '@jest/globals';
import { highlight } from './highlight.js';

/** The text that a browser shows for this HTML. */
const textOf = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

describe('highlighted code', () => {
  it('marks keys, strings, numbers and comments', () => {
    expect(highlight('{"id": 42, "name": "Ada"} # yes')).toBe(
      '{<span class="t-key">&quot;id&quot;</span>: <span class="t-word">42</span>, <span class="t-key">&quot;name&quot;</span>: <span class="t-text">&quot;Ada&quot;</span>} <span class="t-comment"># yes</span>',
    );
  });

  it('marks nothing in a URL', () => {
    expect(highlight('curl http://localhost:3000/a#b')).toBe('curl http://localhost:3000/a#b');
  });

  it('escapes all untrusted text', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('<script>', '"', "'", '`', '\\', '&lt;', '//', '#', '\n', '</span>', '42', 'null'),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const html = highlight(pieces.join(''));
        expect(textOf(html)).toBe(pieces.join(''));
        expect(html.replaceAll(/<span class="t-(key|text|word|comment)">|<\/span>/g, '')).not.toMatch(
          /[<>"]/,
        );
      }),
      { numRuns: 500 },
    );
  });
});
