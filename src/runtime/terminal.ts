import { styleText } from 'node:util';

type Format = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Applies colour for stdout: only on a terminal, whatever CI or FORCE_COLOR say, and never with NO_COLOR. */
export function styled(format: Format, text: string): string {
  return process.stdout.isTTY ? styleText(format, text, { stream: process.stdout }) : text;
}

/** Removes control characters: no text that somebody else chose may control the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => (character === '\n' ? character : '\u{fffd}'));
}
