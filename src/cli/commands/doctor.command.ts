import type { Command } from 'commander';
import type { Config } from '../../config/config.js';
import { OperatorError } from '../../values/operator-error.js';
import { SigningKeysService } from '../../oauth/provider/signing-keys.service.js';
import { checkDatabase, checkSettings, failed } from '../../operations/doctor/doctor.js';
import { checkReplicas } from '../../operations/doctor/replicas.js';
import type { Check } from '../../operations/doctor/doctor.js';
import { WebhookSecrets } from '../../webhooks/webhook-secrets.js';
import { addCommand } from '../command.js';
import { readConfig, withAnyDatabase } from '../database.js';
import { asTyped, print, statusMark } from '../output.js';

/** Adds `pua doctor`. */
export function doctorCommand(program: Command): void {
  addCommand(
    program,
    'doctor',
    'Check settings, proxy, database, replicas, migrations, keys, copies, totals, sequences, time zones and webhooks, and say how to mend',
    'pua doctor --mend',
  )
    .option('--mend', 'first put copies, totals and sequences right, beside everybody who writes')
    .action(async ({ json, mend = false }: { json?: boolean; mend?: boolean }) => {
      const checks = await examine(mend);
      const healthy = checks.every(({ status }) => status !== 'fail');
      print(json, { healthy, checks }, () => checks.map(line).join('\n'));
      if (!healthy) throw new OperatorError('The doctor found what must be mended');
    });
}

async function examine(mend: boolean): Promise<Check[]> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    if (error instanceof OperatorError) return [failed('settings', error)];
    throw error;
  }
  const checks = checkSettings(config);
  try {
    return [
      ...checks,
      ...(await withAnyDatabase(async ({ dataSource }) => {
        const sealState = () => new SigningKeysService(dataSource, config).sealState();
        const webhookSeals = () => new WebhookSecrets(config).sealState(dataSource);
        return [
          ...(await checkDatabase(dataSource, config, { mend, sealState, webhookSeals })),
          ...(await checkReplicas(dataSource, config.databaseReadUrls)),
        ];
      }, config)),
    ];
  } catch (error) {
    if (error instanceof OperatorError) return [...checks, failed('database', error)];
    throw error;
  }
}

function line({ status, name, message, mend }: Check): string {
  return `${statusMark(status)} ${name}: ${message}${mend === null ? '' : `\n     → ${asTyped(mend)}`}`;
}
