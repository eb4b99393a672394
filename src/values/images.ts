/** Kinds of images by how their bytes begin: what a file is called, or a server says of it, has no say. */
const KINDS: readonly [type: string, start: RegExp][] = [
  ['image/png', /^\x89PNG\r\n\x1a\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  ['image/gif', /^GIF8[79]a/],
];

/** The media type of an image that holds pixels alone; undefined where it is none, or one that could hold a script. */
export function pixelImageType(bytes: Buffer): string | undefined {
  const start = bytes.toString('latin1', 0, 16);
  return KINDS.find(([, pattern]) => pattern.test(start))?.[0];
}

/** {@link pixelImageType}, or a drawing in SVG: it must be served so that what it holds is not run. */
export function imageType(bytes: Buffer): string | undefined {
  const start = bytes.toString('utf8', 0, 1_000).replace(/^\uFEFF/, '');
  const drawing = /^\s*(<\?xml[^>]*>\s*)?(<!--[^]*?-->\s*)*(<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/i.test(start);
  return pixelImageType(bytes) ?? (drawing ? 'image/svg+xml' : undefined);
}
