import { styleText } from 'node:util';

type Format = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Formats text only on a terminal: CI and FORCE_COLOR do not force this, and NO_COLOR prevents it. */
export function styled(format: Format, text: string): string {
  return process.stdout.isTTY ? styleText(format, text, { stream: process.stdout }) : text;
}

/** Replaces control and format characters except line breaks, so that text chosen by others cannot control the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => (character === '\n' ? character : '\u{fffd}'));
}
