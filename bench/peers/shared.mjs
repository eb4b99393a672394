// Shared code of the comparison servers: their settings, the check of a key's form, and small texts.
import { createHmac, hkdfSync } from 'node:crypto';

export const { DATABASE_URL, PORT, SECRET_KEY } = process.env;
export const POOL_SIZE = 10;

const secret = Buffer.from(SECRET_KEY ?? '', 'base64');
const derive = (label) => Buffer.from(hkdfSync('sha256', secret, '', `pua:${label}`, 32));
const pepper = derive('api-key-pepper');
const cursorKey = derive('cursor');

/** Id and hash of a key as they are stored; undefined for a text without the form of a key. */
export function readKey(key) {
  if (typeof key !== 'string' || key.length !== 71) return undefined;
  return { id: key.slice(9, 21), hash: createHmac('sha256', pepper).update(key).digest() };
}

/** @param {Date | null} date */
export function time(date) {
  return date === null ? null : date.toISOString().slice(0, 19).replace('T', ' ');
}

/** `pagination` of a first page; `rows` may contain one row more than the page. */
export function paginate(rows, limit, total, sort, place) {
  const count = Math.min(rows.length, limit);
  const has_more = rows.length > limit;
  const next_cursor = has_more ? cursor(sort, place(rows[count - 1])) : null;
  return { limit, count, total, has_more, next_cursor, prev_cursor: null, sort };
}

function cursor(sort, place) {
  const payload = Buffer.from(JSON.stringify(['after', ...place]));
  const mac = createHmac('sha256', cursorKey).update(sort).update(payload).digest().subarray(0, 16);
  return Buffer.concat([mac, payload]).toString('base64url');
}

/** Percentage with two decimals, half up. */
export function percentage(part, whole) {
  return whole === 0 ? 0 : Math.floor((20_000 * part + whole) / (2 * whole)) / 100;
}

export const TIERS = [
  { rarity: 'common', min_percentage: 50, max_percentage: 100 },
  { rarity: 'uncommon', min_percentage: 20, max_percentage: 50 },
  { rarity: 'rare', min_percentage: 5, max_percentage: 20 },
  { rarity: 'epic', min_percentage: 1, max_percentage: 5 },
  { rarity: 'legendary', min_percentage: 0, max_percentage: 1 },
  { rarity: 'unrated', min_percentage: null, max_percentage: null },
];

export function rarityOf(earners, active) {
  if (active < 10) return 'unrated';
  return TIERS.find(({ min_percentage }) => 100 * earners >= min_percentage * active).rarity;
}

/** The time that statistics state: the last full half minute. */
export function computedAt() {
  return time(new Date(Math.floor(Date.now() / 30_000) * 30_000));
}
