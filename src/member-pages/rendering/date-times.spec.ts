import { describe, expect, it } from '@jest/globals';
import { DateTimes } from './wording.js';

const [english, german] = [new DateTimes('en-GB'), new DateTimes('de')];

describe('a displayed time', () => {
  it('is formatted in the page’s language from the API’s format', () => {
    expect(english.timestamp('2026-01-31 23:59:59')).toMatchObject({
      machine: '2026-01-31T23:59:59Z',
      day: '31 January 2026',
      minute: '31 January 2026, 23:59 UTC',
    });
    expect(german.timestamp('2026-01-31 23:59:59').minute).toBe('31. Januar 2026, 23:59 UTC');
  });

  it.each([
    [0, 'now', 'jetzt'],
    [59, 'now', 'jetzt'],
    [61, '1 minute ago', 'vor 1 Minute'],
    [7_300, '2 hours ago', 'vor 2 Stunden'],
    [90_000, 'yesterday', 'gestern'],
    [10 * 86_400, '10 days ago', 'vor 10 Tagen'],
    [60 * 86_400, '2 December 2025', '2. Dezember 2025'],
    [-30, 'now', 'jetzt'],
    [-61, '31 January 2026, 23:59 UTC', '31. Januar 2026, 23:59 UTC'],
  ])(
    '%d seconds ago is relative, or a date if it is long ago or more than a minute in the future',
    (seconds, inEnglish, inGerman) => {
      const now = Date.parse('2026-01-31T23:59:59Z') + seconds * 1_000;
      const moment = seconds > 30 * 86_400 ? '2025-12-02 23:59:59' : '2026-01-31 23:59:59';
      expect(english.timestamp(moment, now).ago).toBe(inEnglish);
      expect(german.timestamp(moment, now).ago).toBe(inGerman);
    },
  );
});

describe('a waiting time', () => {
  it.each([
    [1, '1 second', '1 Sekunde'],
    [59, '59 seconds', '59 Sekunden'],
    [60, '1 minute', '1 Minute'],
    [61, '2 minutes', '2 Minuten'],
    [900, '15 minutes', '15 Minuten'],
  ])('of %d s is in seconds, or in minutes rounded up', (seconds, inEnglish, inGerman) => {
    expect(english.wait(seconds)).toBe(inEnglish);
    expect(german.wait(seconds)).toBe(inGerman);
  });
});
