#!/usr/bin/env node
// Attacks, and honest callers beside them: `node bin/with-postgres.mjs node bench/attacks.mjs [--seconds 10] [--only TEXT] [--short]`.
// Each attack runs at its full rate, from one address and from twenty. Of the requests that honest callers send meanwhile, of every
// kind, 99 % must go as usual, with p99 ≤ 250 ms and at most 1.5 times the memory, and all of them two seconds after the attack.
// --short, for CI: two seconds from twenty addresses, and only what no busy machine explains is a fault. Needs root on Linux: it runs
// in a mount namespace whose /etc/resolv.conf leads to a name server that never answers.
import './own-node.mjs';
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../bin/build.mjs';
import { attacks as exportAttacks } from './attacks/exports.mjs';
import { attacks as outgoingAttacks, SILENT_NAME_SERVER } from './attacks/outgoing.mjs';
import { honestKinds, measure } from './attacks/target.mjs';
import { attacks as waitingAttacks } from './attacks/waiting.mjs';
import { startFresh } from './fresh-server.mjs';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string' },
    only: { type: 'string', default: '' },
    short: { type: 'boolean', default: false },
  },
});
const seconds = Number(flags.seconds ?? (flags.short ? 2 : 10));
const GOALS = flags.short
  ? { good: 0.9, p99: Infinity, memory: 2.5, later: 0.95 }
  : { good: 0.99, p99: 250, memory: 1.5, later: 1 };

if (process.env.NAMES_ARE_DEAD === undefined) {
  const file = join(tmpdir(), `resolv-${process.pid}.conf`);
  writeFileSync(file, `nameserver ${SILENT_NAME_SERVER}\n`);
  const command = `mount --bind ${file} /etc/resolv.conf && exec "$0" "$@"`;
  const { status } = spawnSync(
    'unshare',
    ['--mount', 'sh', '-c', command, process.execPath, ...process.argv.slice(1)],
    {
      env: { ...process.env, NAMES_ARE_DEAD: '1' },
      stdio: 'inherit',
    },
  );
  process.exit(status ?? 1);
}
createSocket('udp4').bind(53, SILENT_NAME_SERVER);

await build();
Object.assign(process.env, { RATE_LIMIT_AUTH: '1000000', CLIENT_ID_METADATA_DOCUMENTS: 'true' });
// The server connects to its database by name, which strangers' names must not keep it from.
process.env.TEST_DATABASE_URL = process.env.TEST_DATABASE_URL.replace('127.0.0.1', 'localhost');
const target = { ...(await startFresh(3_996)), addresses: 1 };
const faults = [];
const percent = (share) => `${(100 * share).toFixed(1)} %`;
try {
  const kinds = await honestKinds(target);
  console.log('| Attack | addresses | good | p99 ms | memory | 2 s later | bad |');
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | --- |');
  const nothing = { name: 'nothing', attack: () => Promise.resolve() };
  const all = [nothing, ...waitingAttacks, ...outgoingAttacks, ...exportAttacks];
  for (const attack of all.filter(({ name }) => name.includes(flags.only)))
    for (const addresses of flags.short ? [20] : [1, 20]) {
      const found = await measure({ ...target, addresses }, kinds, attack, seconds);
      const { good, p99, memory, later, bad } = found;
      const cells = [
        attack.name,
        addresses,
        percent(good),
        Math.round(p99),
        `${memory.toFixed(2)} ×`,
        percent(later),
        bad,
      ];
      console.log(`| ${cells.join(' | ')} |`);
      if (good < GOALS.good || p99 > GOALS.p99 || memory > GOALS.memory || later < GOALS.later)
        faults.push(`${attack.name}, from ${addresses}: not as it should be`);
    }
} finally {
  await target.end();
}
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
