import { rmSync } from 'node:fs';
import { stopEmbeddedHost } from './embedded-host.mjs';

export default function tearDown() {
  stopEmbeddedHost();
  removeFolders();
}

/** Removes a run's temporary files; retries, since a program that is ending may still write. */
export function removeFolders() {
  for (const folder of new Set([process.env.TEST_FOLDER, process.env.TEST_DATABASES_FOLDER]))
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
