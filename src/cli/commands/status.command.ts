import { Option, type Command } from '@commander-js/extra-typings';
import { VERSION } from '../../config/version.js';
import { readCounts, type Counts } from '../../operations/health/counts.js';
import { probe } from '../../operations/health/probe.js';
import {
  INCIDENTS,
  postIncident,
  updateIncident,
  type ShownIncident,
} from '../../operations/status/incidents.js';
import { INCIDENT_STATES } from '../../database/schema/entities/status.entity.js';
import { OperatorError } from '../../values/operator-error.js';
import { parseNumber, textOf } from '../arguments.js';
import { addCommand, withExample } from '../command.js';
import { readConfig } from '../database.js';
import { fields, named, print, table } from '../output.js';
import { checkLine, examine } from './doctor.command.js';

/** Adds `pua status`. */
export function statusCommand(command: Command): void {
  const status = withExample(command, 'pua status').enablePositionalOptions();
  status.action(async ({ json }) => {
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
    if (!healthy) throw new OperatorError('Not all is well: see above. `pua doctor` checks more');
  });

  const incident = (name: string, about: string, example: string) =>
    addCommand(status, name, about, example)
      .addOption(
        new Option('--state <state>', 'how far it is').choices(INCIDENT_STATES).makeOptionMandatory(),
      )
      .option('--body <text>', 'what is known, for everybody to read', textOf([1, 2000]));

  incident(
    'post',
    'Tell everybody of an incident, on /status. stdout has its id',
    "pua status post --title 'Sign-in fails' --state investigating",
  )
    .requiredOption('--title <text>', 'what is wrong, for everybody to read', textOf([1, 200]))
    .runs(async ({ dataSource, print }, said) => {
      const id = await postIncident(dataSource, { ...said, body: said.body });
      print({ id }, () => String(id));
    });

  incident(
    'update',
    'Add to an incident what is known now; with the state resolved, it is over',
    "pua status update 7 --state resolved --body 'A certificate had expired.'",
  )
    .argument('<incident>', 'id of the incident, from `pua status list`', parseNumber)
    .runs(async ({ dataSource, print }, id, { state, body }) => {
      await updateIncident(dataSource, id, { state, body });
      print({ id, state }, () => `${id} is ${state}`);
    });

  addCommand(
    status,
    'list',
    'List incidents: those that go on, then those of the last 90 days',
    'pua status list',
  ).runs(async ({ dataSource, print }) => {
    const data = await dataSource.query<ShownIncident[]>(INCIDENTS);
    print({ data }, () => table(data, named('id', 'state', 'title', 'started_at', 'updated_at')));
  });
}

const versions = (running: string | null) =>
  running === null || running === VERSION ? VERSION : `${running}, and ${VERSION} of this command`;

/** Leaves out what adds nothing: `3, 1 disabled`. */
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
