import { styleText } from 'node:util';

type Format = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Formats text only if stdout is a terminal, even with FORCE_COLOR. */
export function styled(format: Format, text: string): string {
  return process.stdout.isTTY ? styleText(format, text, { stream: process.stdout }) : text;
}

/** Replaces control and format characters except `\n`, so that text chosen by others cannot control the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => (character === '\n' ? character : '\u{fffd}'));
}
