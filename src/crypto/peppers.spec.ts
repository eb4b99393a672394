import { describe, expect, it } from '@jest/globals';
import { peppersOf } from './peppers.js';
import { Secrets } from './secrets.js';

const OLD = Buffer.alloc(32, 'a');
const NEW = Buffer.alloc(32, 'b');
const KEY = 'pua_test_key';

describe('the hash of an API key', () => {
  it('and the name of its pepper are what the database holds since the first release', () => {
    const [pepper] = peppersOf(new Secrets(OLD));
    expect(pepper!.id.toString('hex')).toBe('58da37bb'); // computed by another program, as is the hash
    expect(pepper!.hash(KEY).toString('hex')).toBe(
      'b5ef51257659487257a9c94283264508d933363f64550f2cae114c0ad92c6dc0',
    );
  });

  it('is made with the current pepper, and the one before is still known', () => {
    const [before] = peppersOf(new Secrets(OLD));
    const [current, previous] = peppersOf(new Secrets(NEW, OLD));
    expect([previous!.id, previous!.hash(KEY)]).toEqual([before!.id, before!.hash(KEY)]);
    expect(current!.hash(KEY)).not.toEqual(previous!.hash(KEY));
    expect(current!.id).not.toEqual(previous!.id);
  });

  it('matches its key under its pepper alone', () => {
    const [current, previous] = peppersOf(new Secrets(NEW, OLD));
    expect(current!.matches(KEY, current!.hash(KEY))).toBe(true);
    expect(current!.matches(`${KEY}.`, current!.hash(KEY))).toBe(false);
    expect(current!.matches(KEY, previous!.hash(KEY))).toBe(false);
    expect(current!.matches(KEY, Buffer.alloc(32))).toBe(false);
    expect(current!.matches(KEY, Buffer.alloc(0))).toBe(false);
  });
});
