import { readFileSync } from 'node:fs';

/** A guide of `docs/` as HTML, rendered from the Markdown when the server is built. */
interface Guide {
  /** Its path is `/docs/<name>`. */
  readonly name: string;
  readonly title: string;
  /** One sentence. */
  readonly summary: string;
  /** Path of the Markdown file in the repository. */
  readonly source: string;
  readonly html: string;
  readonly sections: readonly { readonly id: string; readonly title: string }[];
}

export const GUIDES = JSON.parse(
  readFileSync(new URL('../../docs/guides.json', import.meta.url), 'utf8'),
) as readonly Guide[];
