import { createApp, closeApp } from './app.js';
import { loadConfig, loadDotEnv, StartupError } from './config/config.js';
import { openDatabase } from './database/open-database.js';

/** Requests in flight at SIGTERM have this long to finish. */
const DRAIN_MS = 10_000;

async function main(): Promise<void> {
  loadDotEnv();
  const config = loadConfig();
  const database = await openDatabase(config);
  const app = await createApp(config);
  await app.listen(config.port, config.host);

  let ending = false;
  const end = async (): Promise<void> => {
    if (ending) return;
    ending = true;
    const late = setTimeout(() => app.getHttpServer().closeAllConnections(), DRAIN_MS - 500);
    await closeApp(app);
    clearTimeout(late);
    await database.close();
    process.exit(0);
  };
  process.on('SIGTERM', () => void end());
  process.on('SIGINT', () => void end());
}

try {
  await main();
} catch (error) {
  // What the operator can mend is told in one line; anything else is a fault of ours, with its stack.
  console.error(error instanceof StartupError ? error.message : error);
  process.exit(1);
}
