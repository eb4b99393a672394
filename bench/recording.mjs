// Turns the recording of changes off and on, for what it costs: without it, functions of triggers insert nothing into `changes`.
const definitions = [];

/** @param {(sql: string) => Promise<Record<string, string>[]>} query */
export async function setRecording(query, on) {
  if (definitions.length === 0)
    definitions.push(
      ...(await query(`SELECT pg_get_functiondef(p.oid) AS text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE l.lanname = 'plpgsql' AND p.prosrc LIKE '%INTO public.changes%'`)),
    );
  for (const { text } of definitions)
    await query(on ? text : text.replaceAll(/INSERT INTO public\.changes[^;]*;/g, 'NULL;'));
}
