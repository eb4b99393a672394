import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { DeviceCookies } from '../../accounts/browsers/device-cookies.js';
import { SignIn, type SignedIn } from '../../accounts/sign-in/sign-in.js';
import { Meter } from '../../http/meter.js';
import type { LabelsOf } from '../../http/metrics.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import { fieldText, type Form } from '../requests/form-body.js';
import type { Page } from '../rendering/page-contents.js';

/** The message and status with which the sign-in page is shown again. */
export interface SignInRefusal {
  readonly status: 401 | 429 | 503;
  readonly said: Pick<Extract<Page, { name: 'sign-in' }>, 'fault' | 'username'>;
}

/** Handles the sign-in form, which is the same for apps and for the account pages. */
@Injectable()
export class SignInForm {
  constructor(
    private readonly signIn: SignIn,
    private readonly devices: DeviceCookies,
    private readonly meter: Meter,
  ) {}

  /**
   * @param way the page on which the form was filled in
   * @returns the member, whose browser is remembered; otherwise how to show the page again
   */
  async submit(
    response: Response,
    form: Form,
    way: LabelsOf<'sign_ins_total'>['way'],
  ): Promise<SignedIn | SignInRefusal> {
    const request = response.req;
    const username = fieldText(form.username);
    const attempt = withoutSlot(request, () =>
      this.signIn.attempt({
        username,
        password: fieldText(form.password),
        ip: addressOf(request),
        deviceOf: (userId) => this.devices.find(request, userId),
      }),
    );
    const result = await attempt.catch((error: unknown) => {
      this.meter.count('sign_ins_total', { result: 'failed', way, method: 'password' });
      throw error;
    });
    this.meter.count('sign_ins_total', { result: result.outcome, way, method: 'password' });
    const typed = { username: username.slice(0, 100) };
    switch (result.outcome) {
      case 'signed-in':
        this.devices.issue(request, response, result.userId);
        return result;
      case 'invalid':
        return { status: 401, said: { ...typed, fault: { reason: 'invalid' } } };
      case 'throttled': {
        const { retryAfterSeconds } = result;
        response.set('Retry-After', String(retryAfterSeconds));
        return { status: 429, said: { ...typed, fault: { reason: 'throttled', retryAfterSeconds } } };
      }
      case 'busy':
        response.set('Retry-After', '2');
        return { status: 503, said: { ...typed, fault: { reason: 'busy' } } };
    }
  }
}
