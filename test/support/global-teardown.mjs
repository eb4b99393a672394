import { rmSync } from 'node:fs';

export default function tearDown() {
  rmSync(process.env.TEST_FOLDER, { recursive: true, force: true });
}
