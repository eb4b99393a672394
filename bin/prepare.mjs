// npm's `prepare`, after `npm ci`: makes what the first start would make, which then takes as long as any other. What cannot be
// made here, `npm start` makes, or says why not.
import { build } from './build.mjs';
import { keepCompiled } from './compile-cache.mjs';

try {
  await build();
  keepCompiled();
  const { readySnapshot } = await import('../dist/src/database/embedded-snapshot.js');
  await readySnapshot();
  await import('../dist/src/app.js'); // so that V8 keeps it
} catch (error) {
  console.error(`Not prepared: ${error.message}`);
}
