import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Admission, FairQueue } from './admission.js';

const MOST = 4;
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('admission', () => {
  let now: number;
  let admission: Admission;
  let begun: string[];
  let refused: string[];
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    now = 0;
    admission = new Admission(MOST, () => now);
    begun = [];
    refused = [];
  });
  afterEach(() => void jest.useRealTimers());

  const enter = (name: string, address = '10.0.0.1', credential = '') => {
    const own = { begun, refused }; // requests that a test leaves may be rejected during the next test
    admission.enter(
      { address, credential },
      () => void own.begun.push(name),
      () => void own.refused.push(name),
    );
  };
  const enterAll = (count: number, name: string, address?: string, credential?: string) => {
    for (let i = 0; i < count; i++) enter(`${name}${i}`, address, credential);
  };
  const leave = async (count = 1) => {
    for (let i = 0; i < count; i++) admission.leave();
    await nextTurn();
  };
  const pass = (milliseconds: number) => {
    for (const until = now + milliseconds; now < until;) {
      now += 10;
      jest.advanceTimersByTime(10);
    }
  };

  /** Requests always wait, long enough to count as overload. */
  const overload = async () => {
    enterAll(MOST + 1, 'busy');
    for (let i = 0; i < 12; i++) {
      pass(10);
      enter(`more${i}`);
      await leave();
    }
  };

  it('starts requests up to the maximum, and queues the other requests in order', async () => {
    enterAll(6, 'r');
    expect(begun).toEqual(['r0', 'r1', 'r2', 'r3']);
    expect(admission.state()).toEqual({ atWork: 4, waiting: 2, held: 0 });
    await leave(2);
    expect(begun.slice(4)).toEqual(['r4', 'r5']);
    expect(refused).toEqual([]);
  });

  it('starts no more requests than the maximum in one turn of the event loop, even if requests end immediately', async () => {
    for (let i = 0; i < 2 * MOST; i++)
      admission.enter(
        { address: '10.0.0.1', credential: '' },
        () => {
          begun.push(`r${i}`);
          admission.leave();
        },
        () => undefined,
      );
    expect(begun).toHaveLength(MOST);
    await nextTurn();
    expect(begun).toHaveLength(2 * MOST);
  });

  it('counts a pause of the process as 50 ms of waiting, and rejects requests after a quarter of a second', async () => {
    enterAll(7, 'r');
    now += 10_000;
    jest.advanceTimersByTime(10);
    pass(190);
    expect(refused).toEqual([]);
    pass(20);
    expect([refused, admission.refused]).toEqual([['r4', 'r5', 'r6'], 3]);
    await leave(4);
    expect(admission.state()).toEqual({ atWork: 0, waiting: 0, held: 0 });
  });

  it('spreads many rejections over several turns of the event loop', async () => {
    enterAll(MOST + 3 * MOST, 'r');
    pass(260);
    expect(refused).toHaveLength(MOST);
    await nextTurn();
    expect(refused).toHaveLength(2 * MOST);
    await nextTurn();
    expect(refused).toHaveLength(3 * MOST);
  });

  it('does not pause a connection while no request waits', () => {
    const connection = { pause: jest.fn(), resume: jest.fn() };
    admission.answered(connection, { address: '10.0.0.1', credential: '' });
    expect(connection.pause).not.toHaveBeenCalled();
    expect(admission.state().held).toBe(0);
  });

  it('never rejects a request that enters without a callback for rejection', async () => {
    enterAll(MOST, 'busy');
    admission.enter({ address: '10.0.0.1', credential: '' }, () => void begun.push('patient'));
    pass(5_000);
    expect(refused).toEqual([]);
    await leave();
    expect(begun).toContain('patient');
  });

  it('alternates between addresses, and between credentials of an address, regardless of their number of requests', async () => {
    enterAll(MOST, 'busy');
    for (let i = 0; i < 50; i++) enter(`made-up${i}`, '10.1.1.1', `credential ${i}`);
    enter('elsewhere', '10.2.2.2');
    await leave(2);
    expect(begun.slice(MOST)).toEqual(['made-up0', 'elsewhere']);
    begun = [];
    enterAll(50, 'flood', '10.3.3.3', 'one');
    enter('neighbour', '10.3.3.3', 'other');
    await leave(4);
    expect(begun).toContain('neighbour');
  });

  it('starts and rejects each request in its own asynchronous context', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    enterAll(MOST, 'busy');
    for (const name of ['a', 'b'])
      requests.run(name, () =>
        admission.enter(
          { address: name, credential: '' },
          () => seen.push(requests.getStore()),
          () => seen.push(`${requests.getStore()} refused`),
        ),
      );
    await requests.run('somebody else', () => leave());
    pass(260);
    expect(seen).toEqual(['a', 'b refused']);
  });

  describe('under overload', () => {
    const connection = (reads: string[], name: string) => ({
      pause: () => reads.push(`${name} paused`),
      resume: () => reads.push(`${name} read`),
    });
    const answered = (reads: string[], name: string, address = '10.0.0.1') =>
      admission.answered(connection(reads, name), { address, credential: '' });

    it('pauses a served connection until a slot is free, and then alternates between addresses', async () => {
      await overload();
      const reads: string[] = [];
      for (const address of ['a', 'b']) enter('next', address);
      for (const name of ['a1', 'a2']) answered(reads, name, 'a');
      answered(reads, 'b1', 'b');
      expect(reads).toEqual(['a1 paused', 'a2 paused', 'b1 paused']);
      await leave(MOST);
      await leave(MOST);
      expect(reads.slice(3)).toEqual(['a1 read', 'b1 read', 'a2 read']);
    });

    it('keeps reading from an address without waiting requests if fewer other addresses wait than requests may run at once', async () => {
      await overload();
      const reads: string[] = [];
      answered(reads, 'modest', 'a');
      expect(reads).toEqual([]);
      for (let i = 1; i < MOST; i++) enter('other', `10.1.1.${i}`);
      answered(reads, 'one of many', 'a');
      expect(reads).toEqual(['one of many paused']);
    });

    it('pauses a connection while an earlier connection of the same address is paused', async () => {
      await overload();
      const reads: string[] = [];
      enterAll(3 * MOST, 'many');
      enter('next', 'a');
      answered(reads, 'first', 'a');
      while (!begun.includes('next')) await leave();
      answered(reads, 'second', 'a');
      expect(reads).toEqual(['first paused', 'second paused']);
    });

    it('reads a paused connection again after a second at most', async () => {
      await overload();
      const reads: string[] = [];
      answered(reads, 'a');
      enterAll(20, 'waits');
      for (let i = 0; i < 9; i++) {
        pass(100);
        enterAll(20, 'waits');
      }
      expect(reads).toEqual(['a paused']);
      pass(120);
      expect(reads).toEqual(['a paused', 'a read']);
    });

    it('reads at most as many connections at once as requests may run, even after a second', async () => {
      await overload();
      const reads: string[] = [];
      for (let i = 0; i < 3 * MOST; i++) answered(reads, 'a');
      reads.length = 0;
      const atOnce: number[] = [];
      for (let i = 0; i < 110; i++) {
        enterAll(20, 'waits');
        pass(10);
        atOnce.push(reads.splice(0).length);
      }
      expect(atOnce.filter((count) => count > 0)).toEqual([MOST, MOST, MOST]);
    });

    it('pauses no connection once no request waits', async () => {
      await overload();
      await leave(admission.state().atWork);
      await leave(admission.state().atWork);
      const reads: string[] = [];
      answered(reads, 'a');
      expect(reads).toEqual([]);
    });
  });

  it('pauses connections only after requests have waited without a break for more than 100 ms', async () => {
    now = 500;
    enterAll(MOST + 3, 'r');
    const reads: string[] = [];
    const answered = () =>
      admission.answered(
        { pause: () => reads.push('paused'), resume: () => reads.push('read') },
        { address: '10.0.0.1', credential: '' },
      );
    answered();
    pass(100);
    await leave();
    answered();
    expect(reads).toEqual([]);
    pass(10);
    await leave();
    answered();
    expect(reads).toEqual(['paused']);
  });
});

interface Item {
  readonly name: string;
  readonly since: number;
}

const listOf = (...items: [name: string, ...keys: string[]][]) => {
  const list = new FairQueue<Item>();
  items.forEach(([name, ...keys], since) => list.add({ name, since }, ...keys));
  return list;
};
const all = (list: FairQueue<Item>) => {
  const names: string[] = [];
  for (let item; (item = list.next());) names.push(item.name);
  return names;
};

describe('a fair queue', () => {
  it('serves requests of one key in order of arrival', () => {
    expect(all(listOf(['1', 'a'], ['2', 'a'], ['3', 'a']))).toEqual(['1', '2', '3']);
  });

  it('alternates between keys, regardless of how many requests wait under one key', () => {
    expect(all(listOf(['a1', 'a'], ['a2', 'a'], ['a3', 'a'], ['b1', 'b'], ['c1', 'c']))).toEqual([
      'a1',
      'b1',
      'c1',
      'a2',
      'a3',
    ]);
  });

  it('alternates between the second keys of the same first key', () => {
    const list = listOf(
      ['a1', 'a', 'x'],
      ['a2', 'a', 'x'],
      ['a3', 'a', 'y'],
      ['b1', 'b', 'z'],
      ['b2', 'b', 'z'],
    );
    expect(all(list)).toEqual(['a1', 'b1', 'a3', 'b2', 'a2']);
  });

  it('removes requests that are older than a given time under every key, and serves the rest', () => {
    const list = listOf(['a0', 'a', 'x'], ['b1', 'b', 'y'], ['a2', 'a', 'x'], ['a3', 'a', 'z']);
    expect(list.takeOlderThan(2).map(({ name }) => name)).toEqual(['a0', 'b1']);
    expect(list.size).toBe(2);
    expect(all(list)).toEqual(['a2', 'a3']);
    expect([list.size, list.next()]).toEqual([0, undefined]);
  });
});
