import type { DataSource } from 'typeorm';

/** A step of a query plan in PostgreSQL's JSON; which values it has depends on the options of EXPLAIN. */
export interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly Plan[];
}

/** @param options of EXPLAIN, such as `ANALYZE, ` */
export async function explain(
  by: Pick<DataSource, 'query'>,
  options: string,
  statement: string,
  values: unknown[],
): Promise<Plan> {
  const sql = `EXPLAIN (${options}FORMAT JSON) ${statement}`;
  const [row] = await by.query<{ 'QUERY PLAN': [{ Plan: Plan }] }[]>(sql, values);
  return row!['QUERY PLAN'][0].Plan;
}

/** All steps of a plan. */
export const stepsOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(stepsOf)];

export const blocksOf = (plan: Plan) => plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!;

/** The tables that a plan scans sequentially. */
export const scansOf = (plan: Plan): string[] =>
  stepsOf(plan).flatMap((step) => (step['Node Type'] === 'Seq Scan' ? step['Relation Name']! : []));
