import { deepStrictEqual } from 'node:assert';
import { apiKey, ask, COMPARED } from './questions.mjs';

/** Every so manieth member's credential is tried. */
const SAMPLE = 25;

/**
 * Checks that all servers give the same answers: the same JSON value. Cursors are signed by each server in its own way, so
 * only where there is one is compared.
 */
export async function checkSameness([ours, ...peers], { keys }, tokens) {
  for (const { path } of COMPARED) {
    for (let i = 0; i < keys.length; i += SAMPLE) {
      const key = apiKey(keys[i]);
      if (tokens[i]) await compare(ours, tokens[i], ours, key, path);
      for (const peer of peers) await compare(ours, key, peer, key, path);
    }
  }
}

async function compare(first, firstCredential, other, credential, path) {
  const once = async () => {
    const [expected, actual] = await Promise.all([
      ask(first, firstCredential, path),
      ask(other, credential, path),
    ]);
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
