import { deepStrictEqual } from 'node:assert';
import { apiKey, ask, COMPARED } from './questions.mjs';

/** Every n-th member's credentials are tried. */
const SAMPLE = 25;

/**
 * Checks that all servers return the same JSON values. Each server signs cursors differently, so
 * only their presence is compared.
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
  // Statistics contain the half minute of their computation, which may change between two responses.
  await once().catch(once);
}

function comparable(answer) {
  if (!answer.pagination) return answer;
  const { next_cursor } = answer.pagination;
  return { ...answer, pagination: { ...answer.pagination, next_cursor: typeof next_cursor } };
}
