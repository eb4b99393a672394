import type { Redis } from 'ioredis';
import type { Config } from '../../config/config.js';
import { WINDOW_SECONDS } from './shared-counts.js';
import type { Answer, Ask, Presence, SharedCounts, Word } from './shared-counts.js';

/** One hash per key, timed by Redis's clock. ARGV: quota, window, then spent and wanted of each key. */
const SETTLE = `
local time = redis.call('TIME')
local seconds = tonumber(time[1])
local window = math.floor(seconds / ${WINDOW_SECONDS})
local quota = tonumber(ARGV[1])
local same = tonumber(ARGV[2]) == window
local answer = { window, ((window + 1) * ${WINDOW_SECONDS} - seconds) * 1000 - math.ceil(tonumber(time[2]) / 1000) }
for i, key in ipairs(KEYS) do
  local spent, wanted = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  if not same then
    spent, wanted = 0, math.max(0, wanted)
  end
  local stored = redis.call('HMGET', key, 'window', 'used')
  local before = tonumber(stored[1]) == window and tonumber(stored[2]) or 0
  local granted = math.min(wanted, math.max(0, quota - before - spent))
  local used = math.max(0, before + spent + granted)
  redis.call('HSET', key, 'window', window, 'used', used)
  redis.call('EXPIRE', key, ${2 * WINDOW_SECONDS})
  answer[#answer + 1] = used
  answer[#answer + 1] = granted
end
return answer`;

/** One hash, timed by Redis's clock in ms. ARGV: instance, word, milliseconds. The same logic as ATTEND for PostgreSQL. */
const ATTEND = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local me, word, lasting = ARGV[1], ARGV[2], tonumber(ARGV[3])
local stored = redis.call('HMGET', KEYS[1], 'latest', 'latest_until', 'others_until', 'alone')
local latest, latestUntil, othersUntil = stored[1], tonumber(stored[2]) or now, tonumber(stored[3]) or now + lasting
local alone = stored[4] == '1'
if alone and latest ~= me and latestUntil > now then
  if word ~= 'leaves' then othersUntil = math.max(othersUntil, now + lasting) end
else
  if latest == me then
    alone = word == 'here' and (alone or othersUntil <= now)
  else
    alone = false
    othersUntil = math.max(othersUntil, latestUntil)
    latest = me
  end
  latestUntil = word == 'leaves' and now or now + lasting
end
redis.call('HSET', KEYS[1], 'latest', latest, 'latest_until', latestUntil, 'others_until', othersUntil, 'alone', alone and 1 or 0)
return { latest ~= me and 'wait' or (alone and 'alone' or 'one of some'), othersUntil > now and 1 or 0 }`;

interface Scripts {
  settle(keys: number, ...values: (string | number)[]): Promise<number[]>;
  attend(
    keys: 1,
    key: string,
    instance: string,
    word: Word,
    lastingMs: number,
  ): Promise<[Presence['state'], number]>;
}

export class RedisCounts implements SharedCounts {
  private constructor(private readonly redis: Redis & Scripts) {}

  /** Connects, or keeps trying in the background. The client library is loaded only where Redis is used. */
  static async connect(
    url: string,
    { connect, statement }: Config['databaseDeadlines'],
  ): Promise<RedisCounts> {
    const { Redis } = await import('ioredis');
    const redis = new Redis(url, {
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      connectTimeout: connect,
      commandTimeout: statement,
    });
    redis.on('error', () => undefined); // the commands that fail report it
    redis.defineCommand('settle', { lua: SETTLE });
    redis.defineCommand('attend', { lua: ATTEND });
    await redis.connect().catch(() => undefined);
    return new RedisCounts(redis as Redis & Scripts);
  }

  async attend(instance: string, word: Word, lastingMs: number): Promise<Presence> {
    const [state, others] = await this.redis.attend(1, 'rate:instances', instance, word, lastingMs);
    return { state, others: others === 1 };
  }

  async settle(quota: number, window: number, asks: readonly Ask[]): Promise<Answer> {
    const [now, millisecondsLeft, ...counts] = await this.redis.settle(
      asks.length,
      ...asks.map(({ key }) => `rate:${key}`),
      quota,
      window,
      ...asks.flatMap(({ spent, wanted }) => [spent, wanted]),
    );
    const told = asks.map(({ key }, i) => ({ key, used: counts[2 * i]!, granted: counts[2 * i + 1]! }));
    return { window: now!, millisecondsLeft: millisecondsLeft!, told };
  }

  async end(): Promise<void> {
    this.redis.disconnect();
  }
}
