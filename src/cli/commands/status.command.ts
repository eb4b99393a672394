import type { Command } from '@commander-js/extra-typings';
import { VERSION } from '../../config/version.js';
import { readCounts, type Counts } from '../../operations/health/counts.js';
import { probe } from '../../operations/health/probe.js';
import { OperatorError } from '../../values/operator-error.js';
import { withExample } from '../command.js';
import { readConfig } from '../database.js';
import { fields, print } from '../output.js';
import { checkLine, examine } from './doctor.command.js';

/** Adds `pua status`. */
export function statusCommand(command: Command): void {
  withExample(command, 'pua status').action(async ({ json }) => {
    const address = readConfig().publicUrl;
    let counts: Counts | null = null;
    const [server, { checks, isWhole }] = await Promise.all([
      probe(address),
      examine({ quick: true }, async ({ dataSource }) => {
        counts = await readCounts(dataSource);
      }),
    ]);
    const findings = checks.filter(({ status }) => status !== 'ok');
    const healthy = server.ready && isWhole && findings.every(({ status }) => status !== 'fail');
    const result = { healthy, server: { address, ...server }, counts, findings };
    print(json, result, () => {
      const found = ['database', 'migrations'].map((name) => [
        name,
        checks.find((check) => check.name === name)?.message ?? 'unknown',
      ]);
      const lines = {
        server: `${address} ${server.ready ? `is ready, in ${server.milliseconds} ms` : server.problem}`,
        version: versions(server.version),
        ...Object.fromEntries(found),
        ...(counts && inWords(counts)),
        findings: findings.length === 0 ? 'none' : String(findings.length),
      };
      return [fields(lines), ...findings.map(checkLine)].join('\n');
    });
    if (!healthy) throw new OperatorError('Problems found: see above. Run `pua doctor` for all checks');
  });
}

const versions = (running: string | null) =>
  running === null || running === VERSION ? VERSION : `${running}, and ${VERSION} of this command`;

/** Writes a total with its parts, such as `3, 1 disabled`; omits parts that are zero. */
const sum = (total: number, parts: Readonly<Record<string, number>>) =>
  [String(total), ...Object.entries(parts).flatMap(([what, n]) => (n > 0 ? [`${n} ${what}`] : []))].join(
    ', ',
  );

const inWords = (of: Counts) => ({
  members: sum(of.members, { disabled: of.members_disabled }),
  apps: sum(of.apps, { disabled: of.apps_disabled }),
  keys: sum(of.keys, { 'expire within 30 days': of.keys_expiring }),
  webhooks: sum(of.webhooks, { failing: of.webhooks_failing, 'messages are due': of.messages_due }),
});
