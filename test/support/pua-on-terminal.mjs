// Runs one `pua` after the other on this process's terminal. Each is followed by a line with its exit code.
import { readFileSync } from 'node:fs';

const { run } = await import('../../dist/src/cli/program.js');
for (const args of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  const code = await run(args);
  process.stdout.write(`\n[exit ${code}]\n`);
}
