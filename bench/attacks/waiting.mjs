// By clients that send too little, too much or without an end, and read nothing.
import { open, signIn } from './target.mjs';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const unfinished = (head, length) => `${head} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n`;
const PUT = (key) =>
  `${unfinished('PUT /api/public/profile', 100)}X-API-Key: ${key}\r\nContent-Type: application/json\r\n\r\n{`;

/** Keeps so many connections open, each of which sent its text, and opens another one for each that is closed. */
const hold = (count, textOf) => async (target, keys, until) => {
  const sockets = new Set();
  for (let n = 0; !until.aborted; n++) {
    while (sockets.size >= count && !until.aborted) await pause(5);
    const socket = open(target);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).resume();
    socket.write(textOf(n, keys));
    if (n % 50 === 0) await pause(5);
  }
  for (const socket of sockets) socket.destroy();
};

/** Sends the text again and again on so many connections, whether or not anything is answered; reads it if `isRead`. */
const flood =
  (count, text, { isRead, everyMs }) =>
  async (target, _, until) => {
    const sockets = [];
    while (!until.aborted) {
      while (sockets.filter(({ destroyed }) => !destroyed).length < count) {
        const socket = open(target);
        if (isRead) socket.resume();
        else socket.pause();
        sockets.push(socket);
      }
      for (const socket of sockets) if (socket.writableLength < 1e6) socket.write(text);
      await pause(everyMs);
    }
    for (const socket of sockets) socket.destroy();
  };

const get = (path, header = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`;

/** @type {import('./target.mjs').Attack[]} */
export const attacks = [
  {
    name: '320 forms of 16,384 bytes, unfinished',
    attack: hold(320, () => `${unfinished('POST /oauth/token', 16_384)}${FORM}\r\n${'x'.repeat(16_000)}`),
  },
  {
    name: '4,200 bodies, unfinished',
    attack: hold(4_200, (n) =>
      n % 2
        ? `${unfinished('POST /oauth/par', 100)}${FORM}\r\nx`
        : `${unfinished('POST /account/sign-out', 100)}${FORM}\r\nx`,
    ),
  },
  {
    name: 'slow PUTs of six keys',
    prepare: sixKeys,
    attack: hold(400, (n, keys) => PUT(keys[n % keys.length])),
  },
  { name: '1,000 connections that send nothing', attack: hold(1_000, () => '') },
  {
    name: '12 connections of pipelined openapi.json, never read',
    attack: flood(12, get('/api/public/openapi.json').repeat(1_250), { isRead: false, everyMs: 250 }),
  },
  {
    name: 'one write of 62 KB pipelined every 250 ms',
    attack: flood(1, get('/api/public/profile').repeat(1_300), { isRead: true, everyMs: 250 }),
  },
  {
    name: '1,500 times /readyz every 250 ms',
    attack: flood(1, get('/readyz').repeat(1_500), { isRead: true, everyMs: 250 }),
  },
  {
    name: '300 connections, as fast as they are answered, with made-up keys',
    attack: async (target, _, until) => {
      let n = 0;
      const sockets = Array.from({ length: 300 }, () => {
        const socket = open(target);
        const next = () => socket.write(get('/api/public/events', `X-API-Key: made-up-${n++}\r\n`));
        socket.on('connect', next).on('data', (bytes) => /\r\n\r\n/.test(bytes.toString('latin1')) && next());
        return socket;
      });
      while (!until.aborted) await pause(50);
      for (const socket of sockets) socket.destroy();
    },
  },
  {
    name: '50 wrong passwords a second, from 200 addresses',
    attack: async (target, _, until) => {
      for (let n = 0; !until.aborted; n++) {
        const localAddress = `127.0.2.${1 + (n % 200)}`;
        signIn(target, { username: `nobody-${n}`, password: 'guess', localAddress }).catch(() => undefined);
        await pause(20);
      }
    },
  },
  {
    name: '`?a&a&a…` of 14 KB to metadata and keys',
    attack: flood(4, get(`/oauth/jwks?${'a&'.repeat(7_000)}`), { isRead: true, everyMs: 20 }),
  },
];

/** Six keys of one member. */
function sixKeys({ pua }) {
  const username = `dawdler-${process.hrtime.bigint()}`;
  pua('users', 'create', '--username', username);
  return Array.from({ length: 6 }, (_, n) =>
    pua('keys', 'create', '--user', username, '--name', `key ${n}`, '--scopes', 'profile:write'),
  );
}
