// Starts the server, for containers and service managers (`npm start` builds first). Tracing replaces functions of
// libraries while Node loads them one by one, so a bundle would hide them from it.
const isTraced = /--(?:import|require|experimental-loader|loader)\b/.test(
  [...process.execArgv, process.env.NODE_OPTIONS].join(' '),
);
await import(isTraced ? '../dist/src/main.js' : '../dist/bundle/server.js');
