import { setTimeout } from 'node:timers/promises';
import { Option } from 'commander';
import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import type { Config } from '../../config/config.js';
import { isUnavailable } from '../../database/unavailable.js';
import { OperatorError } from '../../values/operator-error.js';
import { SigningKeysService } from '../../oauth/provider/signing-keys.service.js';
import { checkDatabase, checkSettings, checkVitals, failed } from '../../operations/doctor/doctor.js';
import { checkReplicas } from '../../operations/doctor/replicas.js';
import type { Check, Vitals } from '../../operations/doctor/doctor.js';
import { WebhookSecrets } from '../../webhooks/webhook-secrets.js';
import { durationBetween } from '../arguments.js';
import { addCommand } from '../command.js';
import { readConfig, withAnyDatabase } from '../database.js';
import { asTyped, print, statusMark } from '../output.js';

const EVERY_SECONDS = 60;
const [MOST_OFTEN_SECONDS, MOST_SELDOM_SECONDS] = [1, 86_400];

interface Options {
  json?: boolean;
  mend?: boolean;
  /** Seconds between two checks; true where none were given. */
  watch?: number | true;
}

/** Adds `pua doctor`. */
export function doctorCommand(program: Command): void {
  addCommand(
    program,
    'doctor',
    'Check settings, proxy, database, replicas, migrations, keys, copies, totals, sequences, time zones and webhooks, and say how to mend',
    'pua doctor --mend',
  )
    .option('--mend', 'first put copies, totals and sequences right, beside everybody who writes')
    .addOption(
      new Option(
        '--watch [every]',
        `look again and again (each ${EVERY_SECONDS}s, unless said: a number and s, m, h or d), without what takes long on much data, and write a line for each verdict at first, then for each that changes, until Ctrl-C; with --json one object a line`,
      )
        .argParser(durationBetween(MOST_OFTEN_SECONDS, MOST_SELDOM_SECONDS))
        .conflicts('mend'),
    )
    .action(async ({ json, mend = false, watch }: Options) => {
      const healthy =
        watch === undefined
          ? await lookOnce(json, mend)
          : await lookAgain(json, watch === true ? EVERY_SECONDS : watch);
      if (!healthy) throw new OperatorError('The doctor found what must be mended');
    });
}

async function lookOnce(json: boolean | undefined, mend: boolean): Promise<boolean> {
  const { checks } = await examine(async (dataSource, config) => {
    const found = await checkDatabase(dataSource, config, { mend, ...sealsOf(dataSource, config) });
    return { isWhole: true, checks: found };
  });
  const healthy = checks.every(({ status }) => status !== 'fail');
  print(json, { healthy, checks }, () => checks.map(line).join('\n'));
  return healthy;
}

/** What `--watch` writes: a check whose verdict has changed, and the previous one; null where there was none. */
interface Change extends Check {
  /** When it was noticed, in the API's form. */
  readonly time: string;
  readonly was: Check['status'] | null;
}

/** @returns whether nothing was wrong when it was ended */
async function lookAgain(json: boolean | undefined, everySeconds: number): Promise<boolean> {
  const ended = new AbortController();
  const end = () => ended.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  const known = new Map<string, Check['status']>();
  while (!ended.signal.aborted) {
    const vitals = await examine((dataSource, config) =>
      checkVitals(dataSource, config, sealsOf(dataSource, config)),
    );
    const time = `${new Date().toISOString().slice(0, 19)}Z`;
    for (const change of changesOf(known, vitals)) {
      known.set(change.name, change.status);
      const at = { time, ...change };
      process.stdout.write(`${json ? JSON.stringify(at) : changeLine(at)}\n`);
    }
    await setTimeout(everySeconds * 1000, undefined, { signal: ended.signal }).catch(() => undefined);
  }
  process.off('SIGINT', end).off('SIGTERM', end);
  return ![...known.values()].some((status) => status === 'fail');
}

/** The verdicts that have changed. What was wrong and is no longer reported is right, provided that everything was checked. */
function changesOf(
  known: ReadonlyMap<string, Check['status']>,
  { isWhole, checks }: Vitals,
): Omit<Change, 'time'>[] {
  const gone = isWhole
    ? [...known].filter(([name, status]) => status !== 'ok' && !checks.some((check) => check.name === name))
    : [];
  const now: Check[] = [
    ...checks,
    ...gone.map(([name]) => ({ name, status: 'ok' as const, message: 'is found no more', mend: null })),
  ];
  return now
    .map((check) => ({ was: known.get(check.name) ?? null, ...check }))
    .filter(({ was, status }) => was !== status);
}

const sealsOf = (dataSource: DataSource, config: Config) => ({
  sealState: () => new SigningKeysService(dataSource, config).sealState(),
  webhookSeals: () => new WebhookSecrets(config).sealState(dataSource),
});

/** Checks the settings, and the database with `look`; a failure to look is itself a failed check. */
async function examine(look: (dataSource: DataSource, config: Config) => Promise<Vitals>): Promise<Vitals> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    if (error instanceof OperatorError) return { isWhole: false, checks: [failed('settings', error)] };
    throw error;
  }
  const checks = checkSettings(config);
  try {
    return await withAnyDatabase(async ({ dataSource }) => {
      const { isWhole, checks: found } = await look(dataSource, config);
      const replicas = await checkReplicas(dataSource, config.databaseReadUrls);
      return { isWhole, checks: [...checks, ...found, ...replicas] };
    }, config);
  } catch (error) {
    if (error instanceof OperatorError || isUnavailable(error))
      return { isWhole: false, checks: [...checks, failed('database', error as Error)] };
    throw error;
  }
}

function changeLine({ time, was, ...check }: Change): string {
  return `${time} ${was === null ? '' : `${was} → `}${line(check)}`;
}

function line({ status, name, message, mend }: Check): string {
  return `${statusMark(status)} ${name}: ${message}${mend === null ? '' : `\n     → ${asTyped(mend)}`}`;
}
