// Express 5 and node-postgres as most people write it: a middleware that finds the key, then a handler with its query.
import express from 'express';
import pg from 'pg';
import { ROUTES } from './routes.mjs';
import { DATABASE_URL, POOL_SIZE, PORT, readKey } from './shared.mjs';
import { FIND_KEY, ofMember } from './sql.mjs';

pg.types.setTypeParser(pg.types.builtins.INT8, Number);
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: POOL_SIZE });
const app = express();

app.use(async (request, response, next) => {
  const key = readKey(request.get('x-api-key'));
  const found = key && (await pool.query({ name: 'key', text: FIND_KEY, values: [key.id, key.hash] }));
  if (!found?.rows[0]) return response.status(401).json({ code: 'invalid_credentials' });
  request.member = found.rows[0];
  next();
});

const requireScope = (scope) => (request, response, next) => {
  if (request.member.scopes.includes(scope)) next();
  else response.status(403).json({ code: 'insufficient_scope' });
};

const byAction = (request) => (request.query.action ? `?action=${request.query.action}` : '');
for (const path of new Set(Object.keys(ROUTES).map((url) => url.split('?')[0]))) {
  app.get(path, requireScope(ROUTES[path].data.scope), async (request, response) => {
    const route = ROUTES[path + byAction(request)];
    if (!route) return response.status(400).json({ code: 'invalid_parameter' });
    const { rows } = await pool.query({
      name: route.name,
      text: ofMember(route.data),
      values: [request.member.user_id],
    });
    response.json(route.answer(rows));
  });
}

app.listen(Number(PORT), '127.0.0.1');
