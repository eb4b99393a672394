import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';

describe('the generated page', () => {
  // A new process loads the built code. V8 does not optimize the embedded database, which runs only briefly.
  const pages = JSON.parse(
    execFileSync(process.execPath, ['--liftoff-only', 'bin/docs.mjs', '--print'], {
      maxBuffer: 10_000_000,
    }).toString(),
  ) as Record<string, string>;

  it.each(Object.keys(pages))('%s is up to date (npm run docs)', (path) => {
    expect(readFileSync(path, 'utf8')).toBe(pages[path]);
  });
});

const PAGES = globSync(['{README,CONTRIBUTING,CHANGELOG}.md', 'docs/**/*.md']);

describe('the documents', () => {
  it.each(PAGES)('%s names only existing files', (page) => {
    const named = readFileSync(page, 'utf8').matchAll(
      /`((?:src|test|compat|bench|bin|schema|migrations)\/[\w./-]*\w)`/g,
    );
    expect([...named].map(([, path]) => path!).filter((path) => !existsSync(path))).toEqual([]);
  });

  it.each(PAGES)('%s links only to existing files and headings', (page) => {
    const anchorOf = (heading: string) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-');
    const links = readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)\s#]+)(?:#([^)\s]+))?\)/g);
    const broken = [...links].filter(([, path, anchor]) => {
      const file = join(page, '..', path!);
      if (!existsSync(file)) return true;
      if (anchor === undefined || !file.endsWith('.md')) return false;
      const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm);
      return ![...headings].some(([, heading]) => anchorOf(heading!) === anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  it.each(PAGES.filter((page) => !/README|decisions/.test(page)))('%s names its reader first', (page) => {
    expect(readFileSync(page, 'utf8')).toMatch(/^# .+\n\n(?:Reference f|F)or /);
  });

  it.each(PAGES)('%s has the same number of cells in each row of a table', (page) => {
    const tables = readFileSync(page, 'utf8').match(/(?:^ *\|.*\n)+/gm) ?? [];
    const widthsOf = (table: string) =>
      table
        .trim()
        .split('\n')
        .map((row) => row.split(/(?<!\\)\|/).length);
    expect(tables.filter((table) => new Set(widthsOf(table)).size > 1)).toEqual([]);
  });

  it.each(PAGES)('%s has at most 25 words and 3 links in a table cell', (page) => {
    const tables = readFileSync(page, 'utf8').replaceAll(/^ *```[^]*?^ *```/gm, '');
    const cells = [...tables.matchAll(/^ *\| (.+) \|$/gm)].flatMap(([, row]) => row!.split(/(?<!\\)\|/));
    const isLong = (cell: string) => cell.trim().split(/\s+/).length > 25 || cell.split('](').length > 4;
    expect(cells.filter(isLong)).toEqual([]);
  });

  it('name openssl wherever an operator makes a SECRET_KEY with pua secrets generate', () => {
    const pages = globSync(
      '{docs/operators/*.md,docker-compose.yml,deploy/*/docker-compose.yml,src/config/*.ts}',
    );
    const files = pages.map((path) => [path, readFileSync(path, 'utf8')] as const);
    const generating = files.filter(([, text]) => text.includes('pua secrets generate'));
    expect(generating.length).toBeGreaterThan(5);
    const without = generating.filter(([, text]) => !text.includes('openssl rand -base64 32'));
    expect(without.map(([path]) => path)).toEqual(['docs/operators/command-line.md']); // lists pua's own commands
  });

  it('give a back-channel logout URI only to the conformance plan’s own client', () => {
    const lines = readFileSync('docs/trust/certification.md', 'utf8').split('\n');
    expect(lines.filter((line) => line.includes('--backchannel-logout-uri'))).toEqual([
      expect.stringMatching(/^oidc --name "Conformance back-channel" /),
    ]);
    expect(lines.filter((line) => /^- .*acr-values/.test(line))).toEqual([
      expect.stringContaining('only for a member with a passkey'),
    ]);
  });

  it('contain the same GOPROXY and GONOSUMDB everywhere for the Go client', () => {
    const pattern = 'GOPROXY=\\S+ GONOSUMDB=\\S+';
    const found = execFileSync('git', ['grep', '--untracked', '-ohE', pattern, '--', '*.md']);
    const lines = found.toString().trimEnd().split('\n');
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect([...new Set(lines)]).toEqual([
      'GOPROXY=http://localhost:3000/clients/go,direct GONOSUMDB=public-user-api.example',
    ]);
  });

  it('and all other files in git contain no merge conflict markers', () => {
    const found = spawnSync('git', ['grep', '-lE', '^(<{7}|>{7}|(> ){7})( |$)'], { encoding: 'utf8' });
    expect([found.stdout, found.stderr]).toEqual(['', '']);
  });
});

describe('the version', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

  it('of package.json is in the eight files that bin/version.mjs lists', async () => {
    const { statements } = (await import(resolve('bin/version.mjs'))) as {
      statements(): { file: string; version: string }[];
    };
    const stated = statements();
    expect(new Set(stated.map(({ file }) => file)).size).toBe(8);
    expect(stated.filter((one) => one.version !== version)).toEqual([]);
  });

  it('is the first version in the changelog', () => {
    const [, first] = /^## (\S+)/m.exec(readFileSync('CHANGELOG.md', 'utf8'))!;
    expect(first).toBe(version);
  });
});

describe('docs/contributors/glossary.md', () => {
  const rows = [
    ...readFileSync('docs/contributors/glossary.md', 'utf8').matchAll(/^\| ([^|]+) \|[^|]+\| ([^|]+) \|$/gm),
  ]
    .map(([, words, place]) => ({ words: words!.replaceAll('`', '').trim(), place: place!.trim() }))
    .filter(({ words }) => words !== 'Term' && !words.startsWith('-'));

  it.each(rows)('names a place that contains: $words', ({ words, place }) => {
    const path = /^`(.+)`$/.exec(place)?.[1] ?? join('docs/contributors', /\((.+)\)/.exec(place)![1]!);
    const places = path.includes('/') ? [path] : ['src', 'schema'];
    for (const word of words.split(', '))
      expect(() => execFileSync('grep', ['-rqi', word.replace(/^the /, ''), ...places])).not.toThrow();
  });
});

describe('docs/contributors/architecture.md', () => {
  const page = readFileSync('docs/contributors/architecture.md', 'utf8');

  it('lists exactly the folders of src', () => {
    const [, map] = page.split('## Folders');
    const named = [...map!.split('\n## ')[0]!.matchAll(/`src\/([\w-]+)`/g)].map(([, name]) => name!);
    const folders = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(named.toSorted()).toEqual(folders.map(({ name }) => name).toSorted());
  });

  it('names only existing files, also by their path below src', () => {
    const named = [...page.matchAll(/`([a-z-]+\/[\w./-]+)`/g)]
      .map(([, path]) => path!)
      .filter((path) => !path.startsWith('src/') && !path.includes('…'));
    const isThere = (path: string) =>
      existsSync(`src/${path}`) || existsSync(path) || existsSync(`src/member-pages/${path}`);
    expect(named.filter((path) => !isThere(path))).toEqual([]);
  });
});

describe('test/promises.md', () => {
  const map = readFileSync('test/promises.md', 'utf8');
  const specs = ['test', 'src'].flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((path) => `${folder}/${path as string}`),
  );
  const sections = map
    .split(/^#{2,3} /m)
    .slice(1)
    .map((text) => [text.split('\n')[0]!, text] as const);

  it.each(sections.filter(([, text]) => text.includes('- `')))('names existing tests: %s', (_, text) => {
    for (const [, file, title] of text.matchAll(/^ *- `([^`]+)`: (.+)$/gm)) {
      const path = specs.find((spec) => spec.endsWith(`/${file}`));
      expect([file, path]).toEqual([file, expect.any(String)]);
      const source = readFileSync(path!, 'utf8');
      const isThere = source.includes(`'${title}'`) || source.includes(`"${title}"`);
      expect([file, title, isThere]).toEqual([file, title, true]);
    }
  });

  it.each([
    ['docs/trust/security.md', /^### (.+)$/gm],
    ['docs/trust/reliability.md', /^#{2,3} (?!Not covered)(.+)$/gm],
  ])('has tests for each section of %s', (page, heading) => {
    const headings = [...readFileSync(page, 'utf8').matchAll(heading)].map(([, title]) => title!);
    expect(headings.length).toBeGreaterThan(10);
    const tested = sections.filter(([, text]) => text.includes('- `')).map(([title]) => title);
    expect(headings.filter((title) => !tested.includes(title))).toEqual([]);
  });

  it('has a test for each known pitfall', () => {
    const numbered = map
      .split('## Known pitfalls')[1]!
      .split(/^(?=\d+\. )/m)
      .slice(1);
    expect(numbered.map((pitfall) => pitfall.split('.')[0])).toEqual(numbered.map((_, i) => String(i + 1)));
    expect(numbered.filter((pitfall) => !/^ +- `[^`]+`: /m.test(pitfall))).toEqual([]);
    expect(numbered).toHaveLength(21);
  });
});
