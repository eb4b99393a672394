import { describe, expect, it } from '@jest/globals';
import { OperatorError } from '../../values/operator-error.js';
import { checkPassword, passwordFault } from './passwords.js';

describe('a new password', () => {
  it.each<[string, string, ReturnType<typeof passwordFault>]>([
    ['9 characters', 'nine 9999', 'length'],
    ['10 characters', 'ten 101010', undefined],
    ['10 characters outside the BMP', '🐎🔋📎😀🚲🌵🎈🧭🪁🫐', undefined],
    ['9 characters that are more code units', '🐎🔋📎😀🚲🌵🎈🧭🪁', 'length'],
    ['128 characters', 'xy'.repeat(64), undefined],
    ['129 characters', `${'xy'.repeat(64)}z`, 'length'],
    ['U+0000', 'with\0null and more', 'characters'],
    ['half of a surrogate pair', 'half \ud83d pair', 'characters'],
    ['one of the most common passwords', '1234567890', 'common'],
    ['one of the most common passwords in another case', 'QwertyUiop', 'common'],
    ['one of the most common passwords in other characters', '１２３４５６７８９０', 'common'],
    ['the last of the most common passwords that is long enough', 'zzzzzzzzzz', 'common'],
    ['an empty text', '', 'length'],
    ['one kind of character', 'correcthorsebattery', undefined],
    ['the username', 'Augusta Ada King', 'username'],
    ['the username with a short suffix', 'augusta ada king!1', 'username'],
    ['the username inside a longer text', 'augusta ada king counts', undefined],
  ])('(%s) %j has the fault %p', (_, password, fault) => {
    expect(passwordFault(password, 'augusta ada king')).toBe(fault);
  });

  it('that breaks a rule causes an error message that does not contain the password', () => {
    expect(() => checkPassword('nine 9999', 'ada')).toThrow(
      new OperatorError('The password must have 10 to 128 characters, but has 9'),
    );
    for (const password of ['1234567890', 'ada', 'with\0null and more']) {
      let said = '';
      try {
        checkPassword(password, 'ada');
      } catch (error) {
        said = (error as Error).message;
      }
      expect(said).toMatch(/^The password /);
      expect(said).not.toContain(password);
    }
  });
});
