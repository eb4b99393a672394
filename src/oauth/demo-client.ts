import type { DataSource } from 'typeorm';
import type { Config } from '../config/config.js';
import { registerOwnClient } from './docs-client.js';

/** The client_id of the demo app in examples/browser-client. */
export const DEMO_CLIENT = 'demo';

/** Registers the demo app. For development only. */
export function registerDemoClient(dataSource: DataSource, config: Pick<Config, 'publicUrl'>): Promise<void> {
  const client = { id: DEMO_CLIENT, name: 'Demo app', callback: '/demo/callback', afterSignOut: '/demo' };
  return registerOwnClient(dataSource, config, client);
}
