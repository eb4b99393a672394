// Runs one `pua` command after the other in one process; each command has its own environment, input and output.
import { Readable } from 'node:stream';
import { run } from '../../dist/src/cli/program.js';

const { TMPDIR } = process.env;

process.on('disconnect', () => process.exit());
process.on('message', async ({ environment, args, stdin }) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, { TMPDIR }, environment);
  Object.defineProperty(process, 'stdin', { configurable: true, value: Readable.from([Buffer.from(stdin)]) });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    process[name].write = (text) => {
      output[name] += text;
      return true;
    };
  }
  const code = await run(args);
  process.send({ code, ...output });
});
