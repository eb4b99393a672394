import { describe, expect, it } from '@jest/globals';
import { isEmailAddress, isMailbox } from './string-rules.js';

describe('the rule for email addresses', () => {
  it.each(['ada@example.com', 'a.b+c@d.example', 'ä@exämple.de', "o'neill@example.com"])(
    'accepts %j',
    (text) => {
      expect(isEmailAddress(text)).toBe(true);
    },
  );

  it.each([
    'ada',
    'a@b@c',
    '@b.example',
    'a@',
    'a b@c.example',
    'a@b.example\r\nBcc: c@d.example',
    'a@b.example, c@d.example',
    'Ada <ada@example.com>',
    'a@b.example\0',
    `${'a'.repeat(65)}@b.example`,
    `a@${'b'.repeat(250)}`,
  ])('rejects %j', (text) => {
    expect(isEmailAddress(text)).toBe(false);
  });

  it('accepts a valid display name before the address of a sender', () => {
    expect(isMailbox('ada@example.com')).toBe(true);
    expect(isMailbox('Ada & Co <ada@example.com>')).toBe(true);
    for (const text of ['Ada <ada>', 'Ada, Bob <ada@example.com>', 'A\r\nB <a@b.example>', '<a@b.example>'])
      expect(isMailbox(text)).toBe(false);
  });
});
