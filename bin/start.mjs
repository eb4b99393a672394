#!/usr/bin/env node
// `npm start`: builds when needed, then runs the server.
import './require-node.mjs';
import './end-with-npm.mjs';
import { keepCompiled } from './compile-cache.mjs';

await (await import('./build.mjs')).build();
keepCompiled();
await import('./server.mjs');
