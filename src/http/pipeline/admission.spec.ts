import { describe, expect, it } from '@jest/globals';
import { Admission } from './admission.js';
import type { Place } from './admission.js';

const CAPACITY = { steady: 64, burst: 256 };
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
/** The test's own time: a machine that stands still for a moment calms nobody. */
let now = 0;
const admit = () => new Admission(CAPACITY, () => now);
/** Everybody is somebody else. */
let callers = 0;
const anybody = () => ({
  address: `10.0.${callers >> 8}.${callers++ & 255}`,
  credential: undefined as string | undefined,
});

describe('admission', () => {
  const entered = (admission: Admission, count: number, caller = anybody) =>
    Array.from({ length: count }, () => admission.enter(caller())).filter(
      (place): place is Place => typeof place !== 'string',
    );
  /** Asks on and on, more than can be taken, for longer than a burst lasts. */
  const overload = async (admission: Admission, caller = anybody) => {
    for (const until = now + 300; now < until; now += 10) {
      for (const place of entered(admission, 300, caller)) admission.leave(place);
      await nextTurn();
    }
  };

  it('takes a burst whole, as far as the database can', () => {
    const admission = admit();
    expect(entered(admission, 300)).toHaveLength(256);
    expect(admission.refused).toEqual({ overload: 44, caller_share: 0, address_share: 0 });
  });

  it('takes no more than keeps the database busy where more comes than can be answered, until it is calm again', async () => {
    const admission = admit();
    await overload(admission);
    await nextTurn();
    const places = entered(admission, 300);
    expect(places).toHaveLength(64);
    for (const place of places) admission.leave(place);
    await nextTurn();
    now += 520;
    expect(entered(admission, 300)).toHaveLength(256);
  });

  it('counts what was answered at once until the turn of the event loop is over', async () => {
    const admission = admit();
    for (const place of entered(admission, 256)) admission.leave(place);
    expect(admission.enter(anybody())).toBe('overload');
    await nextTurn();
    expect(admission.underWay).toBe(0);
    expect(typeof admission.enter(anybody())).toBe('object');
  });

  it('always leaves room for others where one caller floods, however it came to overload', async () => {
    const admission = admit();
    const flood = () => ({ address: '10.1.1.1', credential: 'flood' });
    await overload(admission, flood);
    await nextTurn();
    const [flooding] = [entered(admission, 300, flood)];
    expect(flooding).toHaveLength(43); // 2/3 of 64
    expect(admission.refused.caller_share).toBeGreaterThan(0);
    // From the same address, too.
    const neighbour = () => ({ address: '10.1.1.1', credential: 'neighbour' });
    expect(entered(admission, 8, neighbour)).toHaveLength(8);
    expect(entered(admission, 8)).toHaveLength(8);
  });

  it('always leaves room for other addresses, whatever credentials one makes up', async () => {
    const admission = admit();
    let n = 0;
    const inventive = () => ({ address: '10.1.1.1', credential: `made-up-${n++}` });
    await overload(admission, inventive);
    await nextTurn();
    expect(entered(admission, 300, inventive)).toHaveLength(52); // 4/5 of 64
    expect(admission.refused.address_share).toBeGreaterThan(0);
    expect(entered(admission, 8)).toHaveLength(8);
  });

  it('lets one caller alone use enough to keep the process busy', async () => {
    const admission = admit();
    const alone = () => ({ address: '10.1.1.1', credential: 'alone' });
    expect(entered(admission, 150, alone)).toHaveLength(150);
  });
});
