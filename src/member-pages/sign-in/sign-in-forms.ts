import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DeviceCookies } from '../../accounts/browsers/device-cookies.js';
import { SignIn, type SignedIn } from '../../accounts/sign-in/sign-in.js';
import { SignInThrottle } from '../../accounts/sign-in/sign-in-throttle.js';
import { Config } from '../../config/config.js';
import { Meter } from '../../http/meter.js';
import type { LabelsOf } from '../../http/metrics.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type { PageOf } from '../rendering/page-contents.js';
import { fieldText, type Form } from '../requests/form-body.js';
import { PasskeyCeremonies } from './passkey-ceremonies.js';

type Labels = LabelsOf<'sign_ins_total'>;

/** The message and status with which the sign-in page is shown again. */
export interface SignInRefusal {
  readonly status: 401 | 429 | 503;
  readonly said: Pick<PageOf<'sign-in'>, 'fault' | 'username'>;
}

/** Handles the forms of the sign-in page, which are the same for apps and for the account pages. */
@Injectable()
export class SignInForms {
  constructor(
    private readonly config: Config,
    private readonly signIn: SignIn,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly devices: DeviceCookies,
    private readonly throttle: SignInThrottle,
    private readonly meter: Meter,
  ) {}

  /** Whether there are passkeys. */
  get offerPasskeys(): boolean {
    return this.ceremonies.areOffered;
  }

  /**
   * @param way the page on which the form was filled in
   * @returns the member, whose browser is remembered; otherwise how to show the page again
   */
  async withPassword(response: Response, form: Form, way: Labels['way']): Promise<SignedIn | SignInRefusal> {
    const username = fieldText(form.username);
    const count = (result: Labels['result']) =>
      this.meter.count('sign_ins_total', { result, way, method: 'password' });
    const result = await this.check(response.req, username, fieldText(form.password)).catch(
      (error: unknown) => {
        count('failed');
        throw error;
      },
    );
    count(result.outcome);
    const typed = { username: username.slice(0, 100) };
    switch (result.outcome) {
      case 'signed-in':
        this.devices.issue(response.req, response, result.userId);
        return result;
      case 'invalid':
        return { status: 401, said: { ...typed, fault: { reason: 'invalid' } } };
      case 'throttled':
        return throttled(response, result.retryAfterSeconds, typed);
      case 'busy':
        response.set('Retry-After', '2');
        return { status: 503, said: { ...typed, fault: { reason: 'busy' } } };
    }
  }

  /** Checks a password. @param confirms whether the member is signed in already, and confirms a change */
  check(request: Request, username: string, password: string, confirms = false) {
    const ip = addressOf(request);
    const deviceOf = (userId: number) => this.devices.find(request, userId);
    return withoutSlot(request, () => this.signIn.attempt({ username, password, ip, deviceOf, confirms }));
  }

  /**
   * Responds with the options for `navigator.credentials.get`.
   *
   * @param page path of the page with the form
   * @throws PageFault if there are no passkeys
   */
  async sendPasskeyOptions(response: Response, page: string): Promise<void> {
    const purpose = this.ceremonies.purposeFor(response.req, page);
    response.status(200).json(await this.ceremonies.signInOptions(purpose));
  }

  /**
   * The same as {@link withPassword}.
   *
   * @throws PageFault if there are no passkeys, and Busy if too many from this address are being checked
   */
  async withPasskey(
    response: Response,
    form: Form,
    page: string,
    way: Labels['way'],
  ): Promise<SignedIn | SignInRefusal> {
    const request = response.req;
    const purpose = this.ceremonies.purposeFor(request, page);
    const count = (result: Labels['result']) =>
      this.meter.count('sign_ins_total', { result, way, method: 'passkey' });
    const address = addressOf(request);
    const deadline = performance.now() + this.config.signInPatience;
    const place = await this.throttle.take([{ kind: 'passkeys', of: address }], deadline);
    if ('retryAfterSeconds' in place) {
      count('throttled');
      return throttled(response, place.retryAfterSeconds);
    }
    const signedIn = await this.ceremonies
      .signIn(form.credential, purpose, address)
      .catch((error: unknown) => {
        place.withdraw();
        count('failed');
        throw error;
      });
    await place.settle(signedIn ? 'signed-in' : 'failed');
    count(signedIn ? 'signed-in' : 'invalid');
    if (!signedIn) return { status: 401, said: { fault: { reason: 'unproven' } } };
    this.devices.issue(request, response, signedIn.userId);
    return signedIn;
  }
}

function throttled(
  response: Response,
  retryAfterSeconds: number,
  typed: { username?: string } = {},
): SignInRefusal {
  response.set('Retry-After', String(retryAfterSeconds));
  return { status: 429, said: { ...typed, fault: { reason: 'throttled', retryAfterSeconds } } };
}
