// Starts the server, for containers and service managers (`npm start` builds first). Tracing patches libraries when Node loads them, so it
// cannot use the bundle.
const isTraced = /--(?:import|require|experimental-loader|loader)\b/.test(
  [...process.execArgv, process.env.NODE_OPTIONS].join(' '),
);
await import(isTraced ? '../dist/src/main.js' : '../dist/bundle/server.js');
