import { deepStrictEqual } from 'node:assert';
import { ask, COMPARED } from './questions.mjs';

/** Every so manieth key is tried. */
const SAMPLE = 25;

/**
 * Checks that all servers give the same answers: the same JSON value. Cursors are signed by each server in its own way, so
 * only where there is one is compared.
 */
export async function checkSameness(servers, keys) {
  const [first, ...others] = servers;
  for (const { path } of COMPARED) {
    for (const key of keys.filter((_, i) => i % SAMPLE === 0)) {
      for (const other of others) await compare(first, other, key, path);
    }
  }
}

async function compare(first, other, key, path) {
  const once = async () => {
    const [expected, actual] = await Promise.all([ask(first, key, path), ask(other, key, path)]);
    deepStrictEqual(
      comparable(actual),
      comparable(expected),
      `${other.name} answers ${path} otherwise than ${first.name}`,
    );
  };
  // Statistics show the half minute that they are of, which may turn between two answers.
  await once().catch(once);
}

function comparable(answer) {
  if (!answer.pagination) return answer;
  const { next_cursor } = answer.pagination;
  return { ...answer, pagination: { ...answer.pagination, next_cursor: typeof next_cursor } };
}
