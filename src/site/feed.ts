import { escapeHtml } from '../values/string-rules.js';

const VERSION = /<h2 id="([^"]+)"><a[^>]*>([\d.]+) \((\d{4}-\d\d-\d\d)\)<\/a><\/h2>([^]*?)(?=<h2 |$)/g;

/** Makes an Atom feed (RFC 4287) of the versions. @param page its URL @param html its content: a heading per version, newest first */
export function writeFeed(name: string, page: string, html: string): string {
  const versions = [...html.matchAll(VERSION)].map(([, id, version, day, content]) => ({
    version: `${name} ${version}`,
    url: `${page}#${id}`,
    updated: `${day}T00:00:00Z`,
    content: content!.trim(),
  }));
  const entries = versions.map(
    ({ version, url, updated, content }) => `<entry>
<id>${escapeHtml(url)}</id>
<title>${escapeHtml(version)}</title>
<updated>${updated}</updated>
<link href="${escapeHtml(url)}"/>
<content type="html">${escapeHtml(content)}</content>
</entry>
`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${escapeHtml(page)}</id>
<title>${escapeHtml(name)}: release notes</title>
<author><name>${escapeHtml(name)}</name></author>
<updated>${versions[0]!.updated}</updated>
<link href="${escapeHtml(page)}"/>
<link rel="self" href="${escapeHtml(page)}.atom"/>
${entries.join('')}</feed>
`;
}
