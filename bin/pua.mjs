#!/usr/bin/env node
// `npx pua`: builds when needed, then runs the command line.
import './require-node.mjs';

(await import('./build.mjs')).build();
await import('../dist/src/cli/main.js');
