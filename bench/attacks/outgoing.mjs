// By strangers whose names no server answers, and receivers that never end their responses.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { ask } from './target.mjs';

export const SILENT_NAME_SERVER = '127.53.53.53';
const DOCUMENTS_PER_SECOND = 50;
const MEMBERS = 300;
const RECEIVERS = 40;

/** @type {import('./target.mjs').Attack[]} */
export const attacks = [
  {
    name: 'documents at dead names, and the database cut',
    attack: (target, _, until) => Promise.all([askForDocuments(target, until), cutConnections(target)]),
  },
  { name: 'webhooks at dead names', prepare: registerDeadNames, attack: changeMembers },
  { name: 'receivers that drip their responses', prepare: registerDrips, attack: changeMembers },
];

async function askForDocuments(target, until) {
  for (let n = 0; !until.aborted; n++) {
    const query = new URLSearchParams({ client_id: `https://dead-${n}.example/client.json` });
    void ask(target, {
      path: `/oauth/authorize?${query}`,
      localAddress: `127.0.1.${1 + (n % target.addresses)}`,
    });
    await pause(1_000 / DOCUMENTS_PER_SECOND);
  }
}

/** In the midst of that the server has to connect to its database anew, by name. */
async function cutConnections({ database }) {
  await pause(1_000);
  await database.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
}

function registerDeadNames(target) {
  return registered(
    target,
    ['a', 'b', 'c'].map((name) => `https://dead-${name}.example/hooks`),
  );
}

/** Receivers that take every message, and never end their responses. */
async function registerDrips(target) {
  let open = 0;
  const receiver = createServer((_, response) => {
    open++;
    response.on('close', () => open--).writeHead(200);
    const dripping = setInterval(() => response.write('.'), 50);
    response.on('close', () => clearInterval(dripping));
  });
  await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address();
  const urls = Array.from({ length: RECEIVERS }, (_, n) => `http://127.0.0.1:${port}/${n}`);
  return {
    ...(await registered(target, urls)),
    openSockets: () => open,
    end: () => receiver.closeAllConnections(),
  };
}

/** Receivers of the platform, which are told of every change; and members whose changes they are told of. */
async function registered({ pua, database }, urls) {
  for (const url of urls) pua('webhooks', 'create', '--url', url, '--types', 'profile.updated', '--platform');
  const { rows } = await database.query(
    `INSERT INTO users (username) SELECT 'changed_' || gen_random_uuid() FROM generate_series(1, ${MEMBERS}) RETURNING id`,
  );
  return { ids: rows.map(({ id }) => id) };
}

async function changeMembers({ database }, { ids, openSockets = () => 0, end = () => {} }, until) {
  let most = 0;
  while (!until.aborted) {
    await database.query('UPDATE users SET bio = $2 WHERE id = ANY ($1)', [
      ids.splice(0, 2),
      String(Math.random()),
    ]);
    most = Math.max(most, openSockets());
    await pause(300);
  }
  await database.query(
    `UPDATE webhook_deliveries SET status = 'dead', ended_at = now() WHERE status = 'pending'`,
  );
  await database.query(
    `UPDATE webhook_endpoints SET disabled_at = now(), disabled_because = 'admin' WHERE disabled_at IS NULL`,
  );
  if (most > 0) console.log(`responses that were open at once: at most ${most}`);
  end();
}
