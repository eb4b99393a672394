#!/usr/bin/env node
// `npx pua`: builds when needed, then runs the command line.
import './require-node.mjs';
import './end-with-npm.mjs';
import { keepCompiled } from './compile-cache.mjs';

await (await import('./build.mjs')).build();
keepCompiled();
await import('../dist/bundle/pua.js');
