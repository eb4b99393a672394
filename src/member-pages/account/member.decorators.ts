import { createParamDecorator, Injectable, type PipeTransform } from '@nestjs/common';
import type { Response } from 'express';
import type { SignInPage } from '../../federation/sign-in-pages.js';
import { sentForm } from '../requests/form-body.js';
import { AccountPages, type Member } from './account-pages.js';

/** What a handler asks of the account pages, which only a pipe can be given. */
type Question = (account: AccountPages) => Promise<Member>;

@Injectable()
class AskAccountPages implements PipeTransform<Question, Promise<Member>> {
  constructor(private readonly account: AccountPages) {}

  transform(question: Question): Promise<Member> {
    return question(this.account);
  }
}

const visitor = createParamDecorator((page: SignInPage, context): Question => {
  const response = context.switchToHttp().getResponse<Response>();
  return (account) => account.visitor(page, response);
});

const sender = createParamDecorator(
  async (confirmedOn: SignInPage | undefined, context): Promise<Question> => {
    const response = context.switchToHttp().getResponse<Response>();
    const form = await sentForm(context);
    return (account) => account.sender(response, form, confirmedOn);
  },
);

/** The {@link Member} who is shown the page: see {@link AccountPages.visitor}. */
export const Visitor = (page: SignInPage) => visitor(page, AskAccountPages);

/** The {@link Sender} of a form: see {@link AccountPages.sender}. */
export const FormSender = (confirmedOn?: SignInPage) => sender(confirmedOn, AskAccountPages);
