// Runs one `pua` command after the other on this process's terminal. A line with the exit code follows each.
import { readFileSync } from 'node:fs';

const { run } = await import('../../dist/src/cli/program.js');
for (const args of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  const code = await run(args);
  process.stdout.write(`\n[exit ${code}]\n`);
}
