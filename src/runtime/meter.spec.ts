import { describe, expect, it } from '@jest/globals';
import { Meter } from './meter.js';

describe('Meter', () => {
  it('forwards counts and observations once it has a sink', () => {
    const meter = new Meter();
    meter.count('http_problems_total', { code: 'not_found' });
    meter.observe('password_hashing_duration_seconds', {}, 0.5);
    const heard: unknown[] = [];
    meter.sink = {
      count: (...counted) => void heard.push(counted),
      observe: (...observed) => void heard.push(observed),
    };
    meter.count('http_problems_total', { code: 'not_found' });
    meter.count('http_problems_total', { code: 'not_found' }, 7);
    meter.observe('password_hashing_duration_seconds', {}, 0.5);
    expect(heard).toEqual([
      ['http_problems_total', { code: 'not_found' }, 1],
      ['http_problems_total', { code: 'not_found' }, 7],
      ['password_hashing_duration_seconds', {}, 0.5],
    ]);
  });

  it('reads every source of a metric, and omits a source that fails', async () => {
    const meter = new Meter();
    meter.read('overload_refusals_total', () => [[{ reason: 'database' }, 3]]);
    meter.read('overload_refusals_total', async () => [[{ reason: 'hashing' }, 4]]);
    meter.read('overload_refusals_total', () => {
      throw new Error('away');
    });
    expect(await meter.readings('overload_refusals_total')).toEqual([
      [{ reason: 'database' }, 3],
      [{ reason: 'hashing' }, 4],
    ]);
    expect(await meter.readings('build_info')).toBeUndefined();
  });
});
