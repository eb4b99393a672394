import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import type { Request, Response } from 'express';
import { pathOf } from '../upstream/upstream-sign-ins.js';
import type { SignInPage } from '../upstream/upstream-sign-ins.js';
import { AccountPages } from './account-pages.js';
import { FormBody } from './form-body.js';
import type { Form } from './form-body.js';
import { Page } from './page.decorator.js';

/** Makes the controllers for signing in on such a page itself: by password, passkey, or the platform's own login. */
export function signInControllers(pages: readonly SignInPage[]): Type[] {
  return pages.map(signInController);
}

function signInController(page: SignInPage): Type {
  @Controller(pathOf(page))
  @Page()
  class SignInController {
    constructor(private readonly account: AccountPages) {}

    @Get('upstream')
    signInUpstream(@Req() request: Request, @Res() response: Response): Promise<void> {
      return this.account.signInUpstream(page, request, response);
    }

    /** Lets a signed-in member sign in again. */
    @Get('confirm')
    confirm(@Req() request: Request, @Res() response: Response): Promise<void> {
      return this.account.confirm(page, request, response);
    }

    @Post('sign-in')
    signIn(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
      return this.account.signIn(page, request, response, form);
    }

    /** Sends the passkey options that the sign-in page's script requests. */
    @Post('passkey/options')
    passkeyOptions(
      @Req() request: Request,
      @Res() response: Response,
      @FormBody() form: Form,
    ): Promise<void> {
      return this.account.passkeyOptions(page, request, response, form);
    }

    @Post('passkey')
    signInWithPasskey(
      @Req() request: Request,
      @Res() response: Response,
      @FormBody() form: Form,
    ): Promise<void> {
      return this.account.signInWithPasskey(page, request, response, form);
    }
  }
  return SignInController;
}
