import { describe, expect, it } from '@jest/globals';
import { withoutSecrets } from '../../src/values/secret-forms.js';
import { withoutParameters } from '../../src/http/pipeline/accept.guard.js';
import { imageType } from '../../src/values/images.js';
import { parseAddress } from '../../src/values/network.js';
import { costsAtMost } from '../support/timing.js';

/** Longer than any header: with quadratic patterns such texts take seconds. */
const LENGTH = 64_000;
const SHORTER = 32;
const long = (part: string, length: number) => part.repeat(length / part.length);

describe('a long untrusted text is parsed in less than quadratic time:', () => {
  it.each<[string, (length: number) => unknown, unknown]>([
    ['Accept', (length) => withoutParameters(`a${long(' ', length)}b`).length, LENGTH + 2],
    ['a caller’s address', (length) => parseAddress(`::1${long('%', length)}!`), undefined],
    ['a log line', (length) => withoutSecrets(`a${long(' ', length)}b`).length, LENGTH + 2],
    ['a picture with comments', (length) => imageType(Buffer.from(`${long('<!---->', length)}!`)), undefined],
  ])('%s', async (_what, read, expected) => {
    expect(read(LENGTH)).toBe(expected);
    const short = () => Array.from({ length: SHORTER }, () => read(LENGTH / SHORTER));
    // The short texts have as many characters in total. A quadratic pattern takes 32 times as long for one long text.
    expect(await costsAtMost(8, () => read(LENGTH), short)).toBe(true);
  });
});
