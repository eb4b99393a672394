import { spawn } from 'node:child_process';
import { Argument, type Command } from '@commander-js/extra-typings';
import { withExample } from '../command.js';
import { readConfig } from '../database.js';
import { print } from '../output.js';

const PAGES = {
  front: '/',
  docs: '/docs',
  openapi: '/api/public/openapi.json',
  demo: '/demo',
  developer: '/developer',
  account: '/account/apps',
  activity: '/account/activity',
} as const;

/** Adds `pua open`. */
export function openCommand(command: Command): void {
  withExample(command, 'pua open docs')
    .addArgument(
      new Argument('[page]', 'page to open')
        .choices(Object.keys(PAGES) as (keyof typeof PAGES)[])
        .default('front' as const),
    )
    .action((page, { json }) => {
      const address = `${readConfig().publicUrl}${PAGES[page]}`;
      const program = json ? undefined : desktopProgram();
      if (program) {
        const child = spawn(program, [address], { stdio: 'ignore', detached: true });
        child.on('error', () => undefined); // the user can still open the printed URL
        child.unref();
      }
      print(json, { address }, () => address);
    });
}

function desktopProgram(): string | undefined {
  if (!process.stdout.isTTY) return undefined;
  if (process.platform === 'darwin') return 'open';
  return process.env.DISPLAY || process.env.WAYLAND_DISPLAY ? 'xdg-open' : undefined;
}
