import { describe, expect, it } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { WHOLE_TEXTS } from './rejection-reasons.js';

const SOURCE = globSync('node_modules/oidc-provider/lib/**/*.js')
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');

describe('an error text that determines a rejection’s reason', () => {
  it.each(Object.keys(WHOLE_TEXTS))('exists in the source of oidc-provider: %s', (text) => {
    expect(SOURCE).toContain(`'${text}'`);
  });
});
