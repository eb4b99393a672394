import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { Controller, Get } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { apiNameOf, Config } from '../config/config.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { readableOn } from '../values/colors.js';

/** The style sheet's `--accent` in light mode. */
const ACCENT = '#1f55d8';

/** Returns the platform's color for its icons and `theme-color`, darkened if white is not readable on it. */
export const themeOf = ({ platformColor = ACCENT }: Pick<Config, 'platformColor'>) =>
  readableOn(platformColor, '#ffffff', 4.5);

const markIn = (
  color: string,
) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${color}"/>
<g transform="translate(4 4)"><path d="M12 2.5 4.5 5.4v5.9c0 4.7 3.1 8.6 7.5 10.2 4.4-1.6 7.5-5.5 7.5-10.2V5.4Z" fill="#fff"/>
<path d="m8.6 12.1 2.4 2.4 4.4-4.8" fill="none" stroke="${color}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></g></svg>
`;

/** Offset in bytes of the palette after an indexed PNG's header (PNG, third edition, §11.2), and the palette's number of colors. */
const [PALETTE, COLORS] = [33, 16];

/** Reads a PNG of the mark, and replaces its palette with shades from the color to white. @param file in this folder */
function pixelsIn(file: 'card.png' | 'touch-icon.png', color: string): Buffer {
  const png = readFileSync(new URL(file, import.meta.url));
  const chunk = png.subarray(PALETTE + 4, PALETTE + 8 + 3 * COLORS);
  for (let i = 0; i < 3 * COLORS; i++) {
    const from = Number.parseInt(color.slice(1 + 2 * (i % 3), 3 + 2 * (i % 3)), 16);
    chunk[4 + i] = Math.round(from + ((255 - from) * Math.floor(i / 3)) / (COLORS - 1));
  }
  png.writeUInt32BE(crc32(chunk), PALETTE + 8 + 3 * COLORS);
  return png;
}

/** Makes the preview image of shared links, 1200 × 630 pixels. */
export const makeCard = (config: Config) =>
  new UnchangingDocument(pixelsIn('card.png', themeOf(config)), {
    'Content-Type': 'image/png',
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'max-age=3600',
  });

@Controller()
@Public()
@OutsideApi()
export class IconsController {
  readonly #icon: UnchangingDocument;
  readonly #touchIcon: UnchangingDocument;
  readonly #manifest: UnchangingDocument;

  constructor(config: Config) {
    const kept = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'max-age=86400' };
    const theme_color = themeOf(config);
    this.#icon = new UnchangingDocument(markIn(theme_color), {
      ...kept,
      'Content-Type': 'image/svg+xml',
      'Content-Security-Policy': "default-src 'none'",
    });
    this.#touchIcon = new UnchangingDocument(pixelsIn('touch-icon.png', theme_color), {
      ...kept,
      'Content-Type': 'image/png',
    });
    const name = apiNameOf(config);
    const manifest = {
      name,
      short_name: config.platformName ?? name,
      start_url: '/',
      display: 'browser',
      theme_color,
      background_color: '#ffffff',
      icons: [
        { src: '/icon.svg', type: 'image/svg+xml', sizes: 'any' },
        { src: '/apple-touch-icon.png', type: 'image/png', sizes: '180x180' },
      ],
    };
    this.#manifest = new UnchangingDocument(JSON.stringify(manifest), {
      ...kept,
      'Content-Type': 'application/manifest+json',
    });
  }

  @Get('icon.svg')
  icon(): UnchangingDocument {
    return this.#icon;
  }

  /** The icon for phones that do not support SVG icons. */
  @Get('apple-touch-icon.png')
  touchIcon(): UnchangingDocument {
    return this.#touchIcon;
  }

  /** W3C Web Application Manifest. */
  @Get('site.webmanifest')
  manifest(): UnchangingDocument {
    return this.#manifest;
  }
}
