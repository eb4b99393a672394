import { createParamDecorator, Injectable, type PipeTransform } from '@nestjs/common';
import type { Response } from 'express';
import type { SignInPage } from '../../federation/sign-in-pages.js';
import { sentForm, type Form } from '../requests/form-body.js';
import { AccountPages, type Member, type Sender } from './account-pages.js';

interface Visit {
  readonly page: SignInPage;
  readonly response: Response;
}

interface Submission {
  readonly confirmedOn: SignInPage | undefined;
  readonly response: Response;
  readonly form: Form;
}

@Injectable()
class VisitorPipe implements PipeTransform<Visit, Promise<Member>> {
  constructor(private readonly account: AccountPages) {}

  transform({ page, response }: Visit): Promise<Member> {
    return this.account.visitor(page, response);
  }
}

@Injectable()
class SenderPipe implements PipeTransform<Submission, Promise<Sender>> {
  constructor(private readonly account: AccountPages) {}

  transform({ confirmedOn, response, form }: Submission): Promise<Sender> {
    return this.account.sender(response, form, confirmedOn);
  }
}

const visit = createParamDecorator((page: SignInPage, context) => ({
  page,
  response: context.switchToHttp().getResponse<Response>(),
}));

const submission = createParamDecorator(async (confirmedOn: SignInPage | undefined, context) => ({
  confirmedOn,
  response: context.switchToHttp().getResponse<Response>(),
  form: await sentForm(context),
}));

/** The {@link Member} who is shown the page: see {@link AccountPages.visitor}. */
export const Visitor = (page: SignInPage) => visit(page, VisitorPipe);

/** The {@link Sender} of a form: see {@link AccountPages.sender}. */
export const FormSender = (confirmedOn?: SignInPage) => submission(confirmedOn, SenderPipe);
