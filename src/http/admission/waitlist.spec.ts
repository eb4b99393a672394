import { describe, expect, it } from '@jest/globals';
import { Waitlist } from './waitlist.js';

interface Item {
  readonly name: string;
  readonly since: number;
}

const listOf = (...items: [name: string, ...keys: string[]][]) => {
  const list = new Waitlist<Item>();
  items.forEach(([name, ...keys], since) => list.add({ name, since }, ...keys));
  return list;
};
const all = (list: Waitlist<Item>) => {
  const names: string[] = [];
  for (let item; (item = list.next());) names.push(item.name);
  return names;
};

describe('a waitlist', () => {
  it('serves those of one key in the order in which they came', () => {
    expect(all(listOf(['1', 'a'], ['2', 'a'], ['3', 'a']))).toEqual(['1', '2', '3']);
  });

  it('gives each key its turn, however many wait under another', () => {
    expect(all(listOf(['a1', 'a'], ['a2', 'a'], ['a3', 'a'], ['b1', 'b'], ['c1', 'c']))).toEqual([
      'a1',
      'b1',
      'c1',
      'a2',
      'a3',
    ]);
  });

  it('gives second keys turns within the turns of their first', () => {
    const list = listOf(
      ['a1', 'a', 'x'],
      ['a2', 'a', 'x'],
      ['a3', 'a', 'y'],
      ['b1', 'b', 'z'],
      ['b2', 'b', 'z'],
    );
    expect(all(list)).toEqual(['a1', 'b1', 'a3', 'b2', 'a2']);
  });

  it('gives up what has waited too long, under every key, and serves the rest', () => {
    const list = listOf(['a0', 'a', 'x'], ['b1', 'b', 'y'], ['a2', 'a', 'x'], ['a3', 'a', 'z']);
    expect(list.takeOlderThan(2).map(({ name }) => name)).toEqual(['a0', 'b1']);
    expect(list.size).toBe(2);
    expect(all(list)).toEqual(['a2', 'a3']);
    expect([list.size, list.next()]).toEqual([0, undefined]);
  });
});
