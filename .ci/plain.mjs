// Plain English: finds idioms that readers have to read twice. No finding is allowed in documents (the generated pages among them, and so
// in settings, error texts, metrics and command-line help) and in the pages' texts. Comments and test titles have a stored number of
// findings per folder, `.ci/plain.json`, which may only fall: `node .ci/plain.mjs --lower` stores lower numbers.
// `node .ci/plain.mjs --list [folder]` prints the findings of comments and test titles.
// Not textlint: with the two rules and two filters that this needs, it installs 217 packages.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

process.chdir(new URL('..', import.meta.url).pathname);

/** Better words, and the idiom. A better text is a hint: rewrite the sentence. */
const RULES = [
  ['continue', /\b(?:go|goes|went|gone|going) on\b(?! the | to )/],
  ['again', /\banew\b/],
  ['instead of', /\bin place of\b/],
  ['except', /(?<!,) \bbut for\b/],
  ['in progress', /\bunder way\b/],
  ['alternately', /\bin turns\b/],
  [
    'previous …',
    /\b(?:one|version|secret|run|id|session|versions) before\b(?=[.,;:)]|$| (?:had|has|is|are|stays|ends|works|go|runs?|any)\b)/,
  ],
  [
    'its own …',
    /(?<!because )\bof (?:its|their|our|his) own\b(?= (?:and|or|in|for|is|it|to|that|which)\b|[^ \w]|$)/,
  ],
  ['is in', /\bstands? (?:in|at|beside|under|there|on|with|above|below|nowhere)\b(?! (?:its|the|their) way)/],
  [
    'is not a …',
    /(?<![Tt]here )\b(?:is|are|was|were) no (?!longer|more\b|such\b|way\b|need\b|limit|Docker|cluster)[a-z]+/,
  ],
  [
    'is notified of',
    /\b(?:hears? (?:of|about|what)|heard (?:of|from|within)|(?:is|are|was) heard|told of|tells? (?:nobody|everybody|apps|of))\b/,
  ],
  ['must, or is meant to', /\b(?:is|are) to (?:be|take|have|let|ask|sign|know|come|last)\b/],
  ['(name the actor)', /\b(?:for|by|than|let|leave|refuse|cut off) who\b/],
  [
    '(name the actor)',
    /(?:^|[.;:] )Who(?:ever)? (?:has|is|was|sends|takes|asks|reads|waits|only|does|cannot) [^?]*?[.,;]/,
  ],
  ['regardless of', /\b(?:whatever|whoever|whichever|whomever) (?!that|is available|else)/],
  ['no matter how', /\bhowever (?:many|often|long|much|slowly|fast|it)\b/],
  ['block, delay', /\bh[eo]lds? up\b/],
  ['record, item', /\b(?:a|each) thing\b/],
  ['If …', /(?:^|[.;] )Where (?:it|they|there|nobody|somebody|one|the|no|these) /],
  [
    'The … that …',
    /(?:^|[.;] )What (?!to |a |the |is |it |you |this |they |about |happens)[^?.|]{4,70}? (?:is|are|was|were|has|stays|ends|counts|follows)\b/,
  ],
];
const MAX_SENTENCE = 220;
const SUBJECT =
  /^(?:feat|fix|perf|refactor|docs|test|build|ci|chore|bench|style|revert)(?:\([\w, /-]+\))?!?: (?!an? |the |what |who|where |how |no |nobody |every |each |its |one )\S/;

const lines = (text) => text.split('\n').map((line, i) => [i + 1, line]);

/** Paragraphs, list items and table rows of a Markdown text, each with its first line. */
function* paragraphsOf(text) {
  let isCode = false;
  let begun;
  for (const [at, line] of lines(
    `${text.replaceAll(/<!--[^]*?-->/g, (comment) => comment.replaceAll(/[^\n]/g, ''))}\n`,
  )) {
    const isFence = /^\s*```/.test(line);
    if (begun && (isFence || !line.trim() || /^\s*(?:[-*] |[|#>]|\d+\. )/.test(line))) {
      yield begun;
      begun = undefined;
    }
    if (isFence) isCode = !isCode;
    else if (!isCode && line.trim() && !/^\s*\|?[-| :]+$/.test(line))
      begun = begun ? [begun[0], `${begun[1]} ${line.trim()}`] : [at, line.trim()];
  }
}

/** Comments of a program, each run of lines as one, and titles of tests. */
function* commentsAndTitlesOf(text) {
  let begun;
  for (const [at, line] of lines(`${text}\n`)) {
    const comment = /^\s*(?:\*(?!\/)|\/\/|--|#(?!!)|\/\*\*?)\s?(.*?)(?:\*\/)?\s*$/.exec(line)?.[1];
    if (comment?.trim()) begun = begun ? [begun[0], `${begun[1]} ${comment.trim()}`] : [at, comment.trim()];
    if (!begun || (comment?.trim() && !line.includes('*/'))) {
      if (begun) continue;
    } else {
      yield begun;
      begun = undefined;
    }
    const behind = comment === undefined && /\s(?:\/\/|--) (.*)$/.exec(line)?.[1];
    if (behind) yield [at, behind];
    const title = /(?:\b(?:it|describe|test)|^\s*\](?: as const)?\))\(\s*(['"`])(.*?)\1/.exec(line)?.[2];
    if (title) yield [at, title];
  }
}

function* textsOf(text) {
  for (const [at, line] of lines(text)) {
    const value = /:\s*"(.*)"/.exec(line)?.[1];
    if (value) yield [at, value];
  }
}

function findingsIn(path, parts, { isLengthChecked }) {
  return [...parts].flatMap(([at, text]) => {
    const prose = text.replaceAll(/`[^`]*`/g, 'x').replaceAll(/\]\([^)]*\)/g, ']');
    const found = RULES.filter(([, idiom]) => idiom.test(prose)).map(([better]) => better);
    const isLong = (sentence) => sentence.length > MAX_SENTENCE;
    if (isLengthChecked && !text.startsWith('|') && prose.split(/(?<=[.!?])\s/).some(isLong))
      found.push('shorter sentences');
    return found.map((better) => `${path}:${at}: ${text.slice(0, 150)}   → ${better}`);
  });
}

const paths = execFileSync('git', ['ls-files'], { encoding: 'utf8' })
  .split('\n')
  // Landed migrations and the schema of a released version do not change any more.
  .filter(
    (path) => path && !/(?:^|\/)fixtures\/|^migrations\/|^test\/support\/version-|^bench\/.*\.md$/.test(path),
  );
const read = (path) => readFileSync(path, 'utf8');
const matching = (pattern) => paths.filter((path) => pattern.test(path));

const strict = [
  ...matching(/\.md$/).flatMap((path) =>
    findingsIn(path, paragraphsOf(read(path)), { isLengthChecked: true }),
  ),
  ...matching(/rendering\/texts\/en\/.*\.json$/).flatMap((path) => findingsIn(path, textsOf(read(path)), {})),
];

const folderOf = (path) => path.split('/')[0];
const counted = new Map();
for (const path of matching(/\.(?:ts|mts|mjs|js|sql|go|py)$/)) {
  const found = findingsIn(path, commentsAndTitlesOf(read(path)), {});
  if (found.length > 0) counted.set(folderOf(path), [...(counted.get(folderOf(path)) ?? []), ...found]);
}

const [mode, folder] = process.argv.slice(2);
const stored = JSON.parse(read('.ci/plain.json'));
if (mode === '--list')
  console.log([...counted].flatMap(([name, found]) => (folder && folder !== name ? [] : found)).join('\n'));
if (mode === '--lower') {
  const lower = [...counted].map(([name, { length }]) => [name, Math.min(length, stored[name] ?? 0)]);
  writeFileSync(
    '.ci/plain.json',
    `${JSON.stringify(Object.fromEntries(lower.toSorted(([one], [other]) => (one < other ? -1 : 1))), null, 2)}\n`,
  );
}

const faults = [...strict];
for (const [name, found] of counted)
  if (found.length > (stored[name] ?? 0))
    faults.push(`${name}: ${found.length} findings, ${stored[name] ?? 0} are allowed:`, ...found);
const subject = execFileSync('git', ['log', '-1', '--no-merges', '--format=%s'], { encoding: 'utf8' }).trim();
if (!SUBJECT.test(subject) || subject.length > 72)
  faults.push(`commit “${subject}”   → type(area): imperative verb …, at most 72 characters`);
console.log(faults.join('\n') || 'No findings beyond the stored ones.');
process.exitCode = faults.length > 0 ? 1 : 0;
