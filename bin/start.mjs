#!/usr/bin/env node
// `npm start`: builds when needed, then runs the server.
import './require-node.mjs';

(await import('./build.mjs')).build();
await import('../dist/src/main.js');
