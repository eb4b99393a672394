// The layers that a request to this server passes through, for a CPU profile.

/** @type {[layer: string, belongs: (place: Place) => boolean][]} the first match counts */
const LAYERS = [
  [
    'system calls of sockets, and the parser of HTTP',
    ({ url, name }) => url === '' && /^(write|read|shutdown)/.test(name),
  ],
  ['garbage collection', ({ name }) => name === '(garbage collector)'],
  [
    'node:http, streams, timers, promises',
    ({ url, name }) => /^node:(?!internal\/crypto)/.test(url) || (url === '' && name !== ''),
  ],
  [
    'crypto: HMAC, digests, signatures',
    ({ url, module }) => url.startsWith('node:internal/crypto') || module === 'jose',
  ],
  [
    "PostgreSQL's protocol: statements out, rows in",
    ({ url, module }) =>
      /^pg(-|$)/.test(module) || /\/database\/postgres\/(read-connection|pipelined-reads)\.js$/.test(url),
  ],
  [
    'oidc-provider and Koa',
    ({ module }) => /^(oidc-provider|koa|@koa\/|raw-body|cookies|keygrip)/.test(module),
  ],
  ['Nest: router, guards, interceptors', ({ module }) => module.startsWith('@nestjs/') || module === 'rxjs'],
  ['our code: credential, scope, limits', ({ url }) => url.includes('/dist/src/auth/')],
  ['our code: the authorization server', ({ url }) => /\/dist\/src\/(oauth|accounts)\//.test(url)],
  ['our code: query, answer, database', ({ url }) => url.includes('/dist/src/')],
  ['Express and its modules', ({ module }) => module !== ''],
];

/**
 * @typedef {{url: string, name: string, module: string}} Place a function of a profile; `module` is the package's name, empty
 * for Node and this server
 */

/** Finds the layer that a function belongs to. */
export function layerOf({ url, functionName }) {
  const [, ...modules] = url.split('node_modules/');
  const module = /^(@[^/]+\/[^/]+|[^/]+)/.exec(modules.pop() ?? '')?.[0] ?? '';
  return LAYERS.find(([, belongs]) => belongs({ url, name: functionName, module }))?.[0] ?? 'the rest';
}
