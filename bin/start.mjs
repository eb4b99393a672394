#!/usr/bin/env node
// `npm start`: builds when needed, then runs the server.
import './require-node.mjs';
import './end-with-npm.mjs';
import module from 'node:module';
import { keepCompiled } from './compile-cache.mjs';

await (await import('./build.mjs')).build();
keepCompiled();
module.setSourceMapsSupport?.(true); // errors name the lines of the TypeScript sources
await import('./server.mjs');
