import { readFileSync } from 'node:fs';

/** A guide of `docs/` as HTML: `npm run docs` makes it of the Markdown, and a test compares it. */
export interface Guide {
  /** Its address is `/docs/<name>`. */
  readonly name: string;
  readonly title: string;
  /** One sentence. */
  readonly summary: string;
  /** File of the repository. */
  readonly source: string;
  readonly html: string;
  readonly sections: readonly { readonly id: string; readonly title: string }[];
}

export const GUIDES = JSON.parse(
  readFileSync(new URL('./guides.json', import.meta.url), 'utf8'),
) as readonly Guide[];
