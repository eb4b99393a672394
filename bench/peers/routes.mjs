// The peers' responses: the request's path and query → its data and how rows become the response.
import * as answers from './answers.mjs';
import { ACHIEVEMENTS, CONNECTIONS, EVENTS, PROFILE, STATISTICS } from './sql.mjs';

/** A list without items arrives as one row of nulls, or as no row. */
const found = (rows) => (rows.length === 0 || rows[0].id === null ? [] : rows);
const list = (answer) => (rows) => answer(found(rows), rows[0]?.total ?? 0, rows[0]?.pins ?? []);

/** @type {Record<string, {name: string, data: object, answer: (rows: object[]) => object}>} */
export const ROUTES = {
  '/api/public/profile': { name: 'profile', data: PROFILE, answer: (rows) => answers.profile(rows[0]) },
  '/api/public/events': { name: 'events', data: EVENTS, answer: list(answers.events) },
  '/api/public/connections': { name: 'connections', data: CONNECTIONS, answer: list(answers.connections) },
  '/api/public/achievements': {
    name: 'achievements',
    data: ACHIEVEMENTS,
    answer: list(answers.achievements),
  },
  '/api/public/achievements?action=stats': {
    name: 'statistics',
    data: STATISTICS,
    answer: (rows) => answers.statistics(found(rows)),
  },
};
