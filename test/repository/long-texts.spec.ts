import { describe, expect, it } from '@jest/globals';
import { withoutSecrets } from '../../src/http/logger.js';
import { withoutParameters } from '../../src/http/pipeline/accept.guard.js';
import { imageType } from '../../src/values/images.js';
import { parseAddress } from '../../src/values/network.js';

/** Longer than any header: with quadratic patterns these take seconds. */
const LENGTH = 64_000;
const long = (part: string) => part.repeat(LENGTH / part.length);

describe('A long text of strangers is read in no time:', () => {
  it.each<[string, () => unknown, unknown]>([
    ['Accept', () => withoutParameters(`a${long(' ')}b`).length, LENGTH + 2],
    ['the address of a caller', () => parseAddress(`::1${long('%')}!`), undefined],
    ['a log line', () => withoutSecrets(`a${long(' ')}b`).length, LENGTH + 2],
    ['a picture with comments', () => imageType(Buffer.from(`${long('<!---->')}!`)), undefined],
  ])('%s', (_what, read, expected) => {
    const begun = process.cpuUsage();
    expect(read()).toBe(expected);
    expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(500);
  });
});
