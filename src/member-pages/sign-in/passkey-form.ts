import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Csrf } from '../../accounts/browsers/csrf.js';
import { DeviceCookies } from '../../accounts/browsers/device-cookies.js';
import type { SignedIn } from '../../accounts/sign-in/sign-in.js';
import { SignInThrottle } from '../../accounts/sign-in/sign-in-throttle.js';
import { Config } from '../../config/config.js';
import { Meter } from '../../http/meter.js';
import type { LabelsOf } from '../../http/metrics.js';
import { addressOf } from '../../values/network.js';
import type { Form } from '../requests/form-body.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import type { PasskeyFormUrls as Addresses } from '../rendering/page-contents.js';
import type { SignInRefusal } from './sign-in-form.js';
import { PasskeyCeremonies, type CeremonyPurpose } from './passkey-ceremonies.js';

/** Serves the passkey script of the sign-in page: the same for apps and for the account pages. */
@Injectable()
export class PasskeyForm {
  constructor(
    private readonly ceremonies: PasskeyCeremonies,
    private readonly csrf: Csrf,
    private readonly devices: DeviceCookies,
    private readonly meter: Meter,
    private readonly throttle: SignInThrottle,
    private readonly config: Config,
  ) {}

  /** What a sign-in page needs to offer passkeys; empty if there are none. @param only whether the app requires a passkey */
  formOn(page: string, only = false): { passkey?: Addresses & { only: boolean } } {
    if (!this.ceremonies.areOffered) return {};
    return { passkey: { options: `${page}/passkey/options`, action: `${page}/passkey`, only } };
  }

  /**
   * Responds with the options for `navigator.credentials.get`.
   *
   * @param page the page with the form, as passed to {@link formOn}
   * @throws PageFault if there are no passkeys
   */
  async options(response: Response, page: string): Promise<void> {
    response.status(200).json(await this.ceremonies.signInOptions(this.#purpose(response.req, page)));
  }

  /**
   * @param way the page from which the form was sent
   * @returns the member, whose browser is remembered; otherwise how to show the page again
   * @throws PageFault if there are no passkeys, and Busy if too many from this address are being checked
   */
  async submit(
    response: Response,
    form: Form,
    page: string,
    way: LabelsOf<'sign_ins_total'>['way'],
  ): Promise<SignedIn | SignInRefusal> {
    const request = response.req;
    const purpose = this.#purpose(request, page);
    const count = (result: LabelsOf<'sign_ins_total'>['result']) =>
      this.meter.count('sign_ins_total', { result, way, method: 'passkey' });
    const address = addressOf(request);
    const deadline = performance.now() + this.config.signInPatience;
    const place = await this.throttle.take([{ kind: 'passkeys', of: address }], deadline);
    if ('retryAfterSeconds' in place) {
      count('throttled');
      const { retryAfterSeconds } = place;
      response.set('Retry-After', String(retryAfterSeconds));
      return { status: 429, said: { fault: { reason: 'throttled', retryAfterSeconds } } };
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

  /** Requires that the request's CSRF token was checked. */
  #purpose(request: Request, page: string): CeremonyPurpose {
    if (!this.ceremonies.areOffered) throw new PageFault(400, 'malformed');
    return { browser: this.csrf.browserOf(request)!, of: page };
  }
}
