import { rmSync } from 'node:fs';

export default function tearDown() {
  for (const folder of [process.env.TEST_FOLDER, process.env.TEST_DATABASES_FOLDER])
    rmSync(folder, { recursive: true, force: true });
}
