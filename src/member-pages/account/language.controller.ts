import { Controller, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { REOPENABLE } from '../../authorization-server/provider/provider.js';
import { Config } from '../../config/config.js';
import { LanguageChoice } from '../rendering/language-choice.js';
import { Pages } from '../rendering/pages.js';
import { fieldText, OwnForm, ServesPages, type Form } from '../requests/page-requests.js';

/** Stores a language chosen on a page of an app's request. The page has a form, since a link's URL would contain the request. */
@Controller('account/language')
@ServesPages()
export class LanguageController {
  constructor(
    private readonly config: Config,
    private readonly language: LanguageChoice,
    private readonly pages: Pages,
  ) {}

  @Post()
  choose(@Res() response: Response, @OwnForm() form: Form): void {
    const { publicUrl } = this.config;
    const to = URL.parse(fieldText(form.to), publicUrl);
    if (to?.origin !== new URL(publicUrl).origin || !REOPENABLE.includes(to.pathname))
      throw new PageFault(400, 'malformed');
    if (!this.language.remember(fieldText(form.language), response)) throw new PageFault(400, 'malformed');
    this.pages.leaveFor(response, to.pathname + to.search);
  }
}
