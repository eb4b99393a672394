// The yardstick: node:http and node-postgres, nothing else. Key and data in one prepared statement, rows to JSON.
import { createServer } from 'node:http';
import pg from 'pg';
import { ROUTES } from './routes.mjs';
import { DATABASE_URL, POOL_SIZE, PORT, readKey } from './shared.mjs';
import { combined } from './sql.mjs';

pg.types.setTypeParser(pg.types.builtins.INT8, Number);
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: POOL_SIZE });
const routes = new Map(
  Object.entries(ROUTES).map(([url, { name, data, answer }]) => [
    url,
    { name, text: combined(data), answer },
  ]),
);

function send(response, status, body) {
  const json = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(json),
  });
  response.end(json);
}

createServer(async (request, response) => {
  const route = routes.get(request.url);
  if (request.method !== 'GET' || route === undefined) return send(response, 404, { code: 'not_found' });
  const key = readKey(request.headers['x-api-key']);
  if (key === undefined) return send(response, 401, { code: 'invalid_credentials' });
  try {
    const { rows } = await pool.query({ name: route.name, text: route.text, values: [key.id, key.hash] });
    if (rows.length === 0) return send(response, 401, { code: 'invalid_credentials' });
    send(response, 200, route.answer(rows));
  } catch (error) {
    console.error(error);
    send(response, 503, { code: 'temporarily_unavailable' });
  }
}).listen(Number(PORT), '127.0.0.1');
