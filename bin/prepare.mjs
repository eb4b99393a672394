// npm's `prepare`, after `npm ci`: builds everything that the first start needs. If a build fails, `npm start` retries it or reports why.
import { globSync, rmSync } from 'node:fs';
import { build } from './build.mjs';
import { keepCompiled } from './compile-cache.mjs';
import { UNUSED } from './unused.mjs';

try {
  for (const path of globSync(UNUSED)) rmSync(path, { recursive: true, force: true });
  await build();
  keepCompiled();
  const { readySnapshot } = await import('../dist/src/database/embedded/snapshot.js');
  await readySnapshot();
  await import('../dist/bundle/app.js'); // so V8 caches it
} catch (error) {
  console.error(`The first start could not be prepared: ${error.message}`);
}
