import { readdirSync } from 'node:fs';
import type { MigrationInterface } from 'typeorm';

/** Returns the exported classes of the matching files in a folder and its subfolders, ordered by path. */
async function classesIn<T>(folder: string, named: RegExp): Promise<(new () => T)[]> {
  const base = new URL(folder, import.meta.url);
  const files = readdirSync(base, { recursive: true, encoding: 'utf8' }).filter((name) => named.test(name));
  const modules = await Promise.all(files.toSorted().map((name) => import(new URL(name, base).href)));
  return modules.flatMap((module: Record<string, unknown>) =>
    Object.values(module).filter((value) => typeof value === 'function'),
  ) as (new () => T)[];
}

/** Files that declare tables; bin/bundle.mjs uses the same pattern. */
const DECLARING = /[./](?:entity|table)\.js$/;
export const ENTITIES = await classesIn<object>('../../', DECLARING);

/** The migrations, in the order in which they run. */
export const MIGRATIONS = await classesIn<MigrationInterface>('../../../migrations/', /\.js$/);
