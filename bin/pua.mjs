#!/usr/bin/env node
// `npx pua`: builds when needed, then runs the command line.
import './require-node.mjs';
import './end-with-npm.mjs';
import module from 'node:module';
import { keepCompiled } from './compile-cache.mjs';

await (await import('./build.mjs')).build();
keepCompiled();
module.setSourceMapsSupport?.(true); // errors name the lines of the TypeScript sources
await import('../dist/bundle/pua.js');
