import { setTimeout } from 'node:timers/promises';
import { Option, type Command } from '@commander-js/extra-typings';
import type { Config } from '../../config/config.js';
import { isUnavailable } from '../../database/postgres/unavailable.js';
import { writeWhole } from '../../config/draft-file.js';
import { OperatorError } from '../../values/operator-error.js';
import { discover, upstreamFaultOf } from '../../federation/openid-provider.js';
import { SigningKeysService } from '../../clients/signing-keys.service.js';
import {
  checkDatabase,
  checkSettings,
  failed,
  type Examination,
  type Findings,
} from '../../operations/doctor/doctor.js';
import { fail, ok, warn, type Check } from '../../operations/doctor/check.js';
import { checkReplicas } from '../../operations/doctor/replicas.js';
import { WebhookSecrets } from '../../webhooks/webhook-sender.js';
import { durationBetween } from '../arguments.js';
import { withExample, endable } from '../command.js';
import { onDatabase, readConfig, type Work } from '../database.js';
import { asTyped, formatJson, print, statusMark } from '../output.js';

const EVERY_SECONDS = 60;

/** Adds `pua doctor`. */
export function doctorCommand(command: Command): void {
  withExample(command, 'pua doctor --mend')
    .option('--mend', 'first repair denormalized columns, counters, sequences and incomplete erasures')
    .option('--full', 'check all members (default above 50,000: a 10 % sample)')
    .addOption(
      new Option(
        '--watch [every]',
        `repeat the quick checks (default every ${EVERY_SECONDS}s) and print changed results until Ctrl-C; with --json, one object per line`,
      )
        .argParser(durationBetween('1s', '1d'))
        .conflicts(['mend', 'full']),
    )
    .option(
      '--textfile <file>',
      'also write `doctor_finding` for node_exporter’s textfile collector: 0 (ok), 1 (warn) or 2 (fail) per check',
    )
    .action(async ({ json, mend = false, full = mend, watch, textfile }) => {
      let healthy: boolean;
      const look = async (asked: Examination) => {
        const found = await examine(asked);
        if (textfile !== undefined) writeMetrics(textfile, found.checks);
        return found;
      };
      if (watch === undefined) {
        const { checks } = await look({ mend, full });
        healthy = checks.every(({ status }) => status !== 'fail');
        print(json, { healthy, checks }, () => checks.map(checkLine).join('\n'));
      } else
        healthy = await endable((ended) =>
          lookAgain(look, json, watch === true ? EVERY_SECONDS : watch, ended),
        );
      if (!healthy) throw new OperatorError('Some checks failed: see above');
    });
}

/** Repeats the quick checks until `ended`. @returns whether no check has the status `fail` at the end */
async function lookAgain(
  look: (asked: Examination) => Promise<Findings>,
  json: boolean | undefined,
  everySeconds: number,
  ended: AbortSignal,
): Promise<boolean> {
  const known = new Map<string, Check['status']>();
  while (!ended.aborted) {
    const found = await look({ quick: true });
    const time = `${new Date().toISOString().slice(0, 19)}Z`;
    for (const change of changesOf(known, found)) {
      known.set(change.name, change.status);
      const before = change.was === null ? '' : `${change.was} → `;
      process.stdout.write(
        `${json ? formatJson({ time, ...change }) : `${time} ${before}${checkLine(change)}`}\n`,
      );
    }
    await setTimeout(everySeconds * 1000, undefined, { signal: ended }).catch(() => undefined);
  }
  return ![...known.values()].some((status) => status === 'fail');
}

const STATUSES = ['ok', 'warn', 'fail'] as const;

/** Replaces the file, atomically for readers, with the findings in Prometheus's text format. */
function writeMetrics(file: string, checks: readonly Check[]): void {
  const names = Map.groupBy(checks, ({ name }) => name);
  const findings = [...names].map(([name, found]) => {
    const worst = Math.max(...found.map(({ status }) => STATUSES.indexOf(status)));
    return `doctor_finding{check=${JSON.stringify(name)}} ${worst}\n`;
  });
  const lastRun = `doctor_last_run_timestamp_seconds ${Math.round(Date.now() / 1000)}\n`;
  try {
    writeWhole(file, `${findings.join('')}${lastRun}`, 0o644); // another user's program reads the file
  } catch (error) {
    const { message } = error as Error;
    throw new OperatorError(
      `${file} cannot be written (${message}): name a file that this user can write to`,
      {
        cause: error,
      },
    );
  }
}

/** Lists changed results with their previous status. After a complete check, problems that were not found again count as solved. */
function changesOf(known: ReadonlyMap<string, Check['status']>, { isWhole, checks }: Findings) {
  const gone = isWhole
    ? [...known].filter(([name, status]) => status !== 'ok' && !checks.some((check) => check.name === name))
    : [];
  const now: Check[] = [...checks, ...gone.map(([name]) => ok(name, 'the problem no longer exists'))];
  return now
    .map((check) => ({ was: known.get(check.name) ?? null, ...check }))
    .filter(({ was, status }) => was !== status);
}

/** Checks settings, external identity provider, database and replicas. @param then runs after a complete check of the database */
export async function examine(asked: Examination, then?: (of: Work) => Promise<void>): Promise<Findings> {
  const checks: Check[] = [];
  let subject = 'settings';
  try {
    const config = readConfig();
    checks.push(...checkSettings(config), ...(await checkUpstream(config)));
    subject = 'database';
    return await onDatabase(
      async (of) => {
        const { dataSource, get } = of;
        const { isWhole, checks: found } = await checkDatabase(dataSource, config, {
          ...asked,
          sealState: () => get(SigningKeysService).sealState(),
          webhookSeals: () => get(WebhookSecrets).sealState(dataSource),
        });
        const replicas = await checkReplicas(dataSource, config.databaseReadUrls);
        if (isWhole) await then?.(of);
        return { isWhole, checks: [...checks, ...found, ...replicas] };
      },
      'anything',
      config,
    );
  } catch (error) {
    if (error instanceof OperatorError || isUnavailable(error))
      return { isWhole: false, checks: [...checks, failed(subject, error as Error)] };
    throw error;
  }
}

async function checkUpstream({ upstream }: Config): Promise<Check[]> {
  if (!upstream) return [];
  const name = 'platform login';
  try {
    await discover(upstream);
    return [ok(name, `${upstream.issuer} can be used`)];
  } catch (error) {
    const { kind, message } = upstreamFaultOf(error);
    const cannot = `${upstream.issuer} cannot be used: ${message}`;
    return kind === 'away'
      ? [warn(name, cannot, 'start the provider, and allow this server to connect to it')]
      : [fail(name, cannot, 'correct UPSTREAM_ISSUER, or the metadata that it publishes')];
  }
}

/** Formats a check as one line, and its remedy as another. */
export function checkLine({ status, name, message, mend }: Check): string {
  return `${statusMark(status)} ${name}: ${message}${mend === null ? '' : `\n     → ${asTyped(mend)}`}`;
}
