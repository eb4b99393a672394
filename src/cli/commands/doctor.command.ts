import type { Command } from 'commander';
import { StartupError } from '../../config/config.js';
import type { Config } from '../../config/config.js';
import { Refusal } from '../../database/refusal.js';
import { SigningKeysService } from '../../oauth/signing-keys.service.js';
import { checkDatabase, checkSettings, failed } from '../../operations/doctor/doctor.service.js';
import type { Check } from '../../operations/doctor/doctor.service.js';
import { addCommand } from '../command.js';
import { readConfig, withAnyDatabase } from '../database.js';
import { print, statusMark } from '../output.js';

export function doctorCommand(program: Command): void {
  addCommand(
    program,
    'doctor',
    'Check settings, proxy, database, migrations, keys and every maintained total, and say how to mend',
    'pua doctor',
  ).action(async ({ json }: { json?: boolean }) => {
    const checks = await examine();
    const healthy = checks.every(({ status }) => status !== 'fail');
    print(json, { healthy, checks }, () => checks.map(line).join('\n'));
    if (!healthy) throw new Refusal('The doctor found what must be mended');
  });
}

async function examine(): Promise<Check[]> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    if (error instanceof StartupError) return [failed('settings', error)];
    throw error;
  }
  const checks = checkSettings(config);
  try {
    return [
      ...checks,
      ...(await withAnyDatabase(
        ({ dataSource }) =>
          checkDatabase(dataSource, config, () => new SigningKeysService(dataSource, config).sealState()),
        config,
      )),
    ];
  } catch (error) {
    if (error instanceof StartupError) return [...checks, failed('database', error)];
    throw error;
  }
}

function line({ status, name, message, mend }: Check): string {
  return `${statusMark(status)} ${name}: ${message}${mend === null ? '' : `\n     → ${mend}`}`;
}
