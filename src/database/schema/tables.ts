import { readdirSync } from 'node:fs';
import type { MigrationInterface } from 'typeorm';

/** Every class that the files of a folder and of those in it export, by the files' names. */
async function classesIn<T>(folder: string, file = '.js'): Promise<(new () => T)[]> {
  const base = new URL(folder, import.meta.url);
  const files = readdirSync(base, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith(file),
  );
  const modules = await Promise.all(files.toSorted().map((name) => import(new URL(name, base).href)));
  return modules.flatMap((module: Record<string, unknown>) =>
    Object.values(module).filter((value) => typeof value === 'function'),
  ) as (new () => T)[];
}

export const ENTITIES = [
  ...(await classesIn<object>('./entities/')),
  ...(await classesIn<object>('../../resources/', '/table.js')),
];

/** In the order in which they run. */
export const MIGRATIONS = await classesIn<MigrationInterface>('../../../migrations/');
