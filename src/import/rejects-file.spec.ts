import { mkdtempSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { RejectsFile, streamSource } from './sources.js';

it('an import writes rejects into a draft file with a random name, readable only by its owner', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rejects-'));
  const path = join(folder, 'rejects.ndjson');
  const victim = join(folder, 'victim');
  writeFileSync(victim, 'untouched');
  symlinkSync(victim, `${path}.${process.pid}`); // the draft's name in earlier versions
  writeFileSync(path, 'older', { mode: 0o644 });

  const rejects = new RejectsFile(path, streamSource(Readable.from([])));
  const drafts = readdirSync(folder).filter((name) => /^rejects\.ndjson\.[\da-f-]{36}$/.test(name));
  expect(drafts).toHaveLength(1);
  expect(statSync(join(folder, drafts[0]!)).mode & 0o777).toBe(0o600);

  const reject = { file: 'users.ndjson', line: 1, reason: 'bad', text: '{"id":1}' };
  rejects.write([reject]);
  const { size } = rejects;
  rejects.write([{ ...reject, line: 2 }]);
  rejects.rewind(size);
  rejects.write([{ ...reject, line: 3 }]);
  rejects.complete();
  rejects.discard();
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as typeof reject).line)).toEqual([1, 3]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(victim, 'utf8')).toBe('untouched');
});
