const SEGMENTS = new Intl.Segmenter('en', { granularity: 'grapheme' });

/**
 * A stranger's text as one line of at most `longest` characters as readers count them. Characters that nobody sees or that turn
 * the direction of writing are left out: with them a name could pass for another.
 */
export function clip(text: string, longest: number): string {
  const line = text
    .toWellFormed()
    .normalize('NFC')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/[\p{Cf}\p{Co}\p{Cn}]/gu, '')
    .trim();
  // One character can carry any number of marks.
  const characters = [...SEGMENTS.segment(line.slice(0, longest * 8))].map(({ segment }) =>
    [...segment].slice(0, 4).join(''),
  );
  return characters.length <= longest ? characters.join('') : `${characters.slice(0, longest - 1).join('')}…`;
}

/** The letter that stands for a name in its tile. */
export function initialOf(name: string): string {
  const [first] = clip(name, 50).match(/[\p{L}\p{N}]/u) ?? [];
  return (first ?? '?').toUpperCase().slice(0, 2);
}

const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });

/** `2026-01-31 18:00:05` → what `<time>` holds, and the words: `31 January 2026`, `31 January 2026, 18:00 UTC`. */
export function timestampOf(moment: string): { machine: string; day: string; minute: string } {
  const machine = `${moment.replace(' ', 'T')}Z`;
  const day = DAY.format(new Date(machine));
  return { machine, day, minute: `${day}, ${moment.slice(11, 16)} UTC` };
}

/** `125` → `3 minutes`: never shorter than it is. */
export function waitOf(seconds: number): string {
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}
