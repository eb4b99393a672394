/** Media types by an image's first bytes, since file names and Content-Type are untrusted. */
const KINDS: readonly [type: string, start: Buffer, behindSize?: string][] = [
  ['image/png', Buffer.from('89504e470d0a1a0a', 'hex')],
  ['image/jpeg', Buffer.from('ffd8ff', 'hex')],
  ['image/webp', Buffer.from('RIFF'), 'WEBP'],
  ['image/gif', Buffer.from('GIF87a')],
  ['image/gif', Buffer.from('GIF89a')],
];

/** Returns the media type of a PNG, JPEG, WebP or GIF image; undefined for other content. */
export function pixelImageType(bytes: Buffer): string | undefined {
  return KINDS.find(
    ([, start, behindSize]) =>
      bytes.subarray(0, start.length).equals(start) &&
      (behindSize === undefined || bytes.toString('latin1', 8, 12) === behindSize),
  )?.[0];
}

/** Like {@link pixelImageType}, but also accepts SVG, which must be served without scripts. */
export function imageType(bytes: Buffer): string | undefined {
  const start = bytes.toString('utf8', 0, 1_000);
  const drawing =
    /^\s*(<\?xml[^>]*>\s*)?(<!--(?:(?!-->)[^])*-->\s*)*(<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/i.test(start);
  return pixelImageType(bytes) ?? (drawing ? 'image/svg+xml' : undefined);
}
