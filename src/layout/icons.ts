import { Controller, Get } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { apiNameOf, Config } from '../config/config.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { readableOn } from '../values/colors.js';

/** `--accent` of the style sheet. */
const ACCENT = '#1f55d8';

/** The colour of the platform’s mark and of the browser’s frame: the platform’s own, dark enough for white on it. */
export const themeOf = ({ platformColor = ACCENT }: Pick<Config, 'platformColor'>) =>
  readableOn(platformColor, '#ffffff', 4.5);

/** The shield of the pages’ header, in white on the platform’s colour. */
const markIn = (
  color: string,
) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${color}"/>
<g transform="translate(4 4)"><path d="M12 2.5 4.5 5.4v5.9c0 4.7 3.1 8.6 7.5 10.2 4.4-1.6 7.5-5.5 7.5-10.2V5.4Z" fill="#fff"/>
<path d="m8.6 12.1 2.4 2.4 4.4-4.8" fill="none" stroke="${color}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></g></svg>
`;

/** What a browser shows of the site outside its window: in a tab, on a home screen. */
@Controller()
@Public()
@OutsideApi()
export class IconsController {
  readonly #icon: UnchangingDocument;
  readonly #manifest: UnchangingDocument;

  constructor(config: Config) {
    const kept = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'max-age=86400' };
    const theme_color = themeOf(config);
    this.#icon = new UnchangingDocument(markIn(theme_color), {
      ...kept,
      'Content-Type': 'image/svg+xml',
      'Content-Security-Policy': "default-src 'none'",
    });
    const name = apiNameOf(config);
    const manifest = {
      name,
      short_name: config.platformName ?? name,
      start_url: '/',
      display: 'browser',
      theme_color,
      background_color: '#ffffff',
      icons: [{ src: '/icon.svg', type: 'image/svg+xml', sizes: 'any' }],
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

  /** W3C, Web Application Manifest. */
  @Get('site.webmanifest')
  manifest(): UnchangingDocument {
    return this.#manifest;
  }
}
