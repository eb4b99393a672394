import { styleText } from 'node:util';

type Format = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Colour only on a terminal, whatever CI or FORCE_COLOR says, and none where NO_COLOR says so. For what goes to stdout. */
export function styled(format: Format, text: string): string {
  return process.stdout.isTTY ? styleText(format, text, { stream: process.stdout }) : text;
}

/** Without control characters: nothing that somebody else chose may steer the terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) => (character === '\n' ? character : '\u{fffd}'));
}
