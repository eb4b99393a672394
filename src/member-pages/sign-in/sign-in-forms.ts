import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Csrf, DeviceCookies } from '../../accounts/browser-cookies.js';
import { SignIn, type SignedIn } from '../../accounts/sign-in/sign-in.js';
import { SignInThrottle } from '../../accounts/sign-in/sign-in-throttle.js';
import { Config } from '../../config/config.js';
import { Meter } from '../../http/meter.js';
import type { LabelsOf } from '../../http/metrics.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type { PageOf, SignInFault } from '../rendering/page-contents.js';
import { Pages, type Sending } from '../rendering/pages.js';
import { fieldText, type Form } from '../requests/page-requests.js';
import { PasskeyCeremonies } from './passkey-ceremonies.js';

type Labels = LabelsOf<'sign_ins_total'>;

/** Status of the page that shows it. */
export const SIGN_IN_STATUSES = { invalid: 401, unproven: 401, throttled: 429, busy: 503 } as const;

/** When to try again if too many sign-ins are in progress. */
const BUSY_SECONDS = 2;

/** With what the sign-in page is shown again. */
export interface SignInRefusal {
  readonly fault: SignInFault;
  readonly username?: string;
}

/** The sign-in page and its forms, which are the same for apps and for the account pages. */
@Injectable()
export class SignInForms {
  constructor(
    private readonly config: Config,
    private readonly pages: Pages,
    private readonly csrf: Csrf,
    private readonly signIn: SignIn,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly devices: DeviceCookies,
    private readonly throttle: SignInThrottle,
    private readonly meter: Meter,
  ) {}

  /** Sends the sign-in page. @param passkeys how they are offered, where there are any */
  show(
    response: Response,
    page: Omit<PageOf<'sign-in'>, 'name' | 'csrf' | 'login' | 'passkeys'>,
    passkeys: PageOf<'sign-in'>['passkeys'] = 'too',
    sending: Sending = {},
  ): void {
    const { reason, retryAfterSeconds } = page.fault ?? {};
    if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
    const shared = {
      name: 'sign-in',
      csrf: this.csrf.token(response.req, response),
      login: this.config.upstream?.label,
      passkeys: this.ceremonies.areOffered ? passkeys : undefined,
    } as const;
    this.pages.send(response, reason ? SIGN_IN_STATUSES[reason] : 200, { ...shared, ...page }, sending);
  }

  /**
   * @param way the page on which the form was filled in
   * @returns the member, whose browser is remembered; otherwise how to show the page again
   */
  withPassword(response: Response, form: Form, way: Labels['way']): Promise<SignedIn | SignInRefusal> {
    const username = fieldText(form.username);
    return this.#counted(response, { way, method: 'password' }, async () => {
      const result = await this.check(response.req, username, fieldText(form.password));
      return 'userId' in result ? result : { username: username.slice(0, 100), fault: result };
    });
  }

  /** Checks a password. @param confirms whether the member is signed in already, and confirms a change */
  async check(
    request: Request,
    username: string,
    password: string,
    confirms = false,
  ): Promise<SignedIn | SignInFault> {
    const ip = addressOf(request);
    const deviceOf = (userId: number) => this.devices.find(request, userId);
    const result = await withoutSlot(request, () =>
      this.signIn.attempt({ username, password, ip, deviceOf, confirms }),
    );
    if (result.outcome === 'signed-in') return result;
    const { outcome: reason, ...more } = result;
    return reason === 'busy' ? { reason, retryAfterSeconds: BUSY_SECONDS } : { reason, ...more };
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
    const purpose = this.ceremonies.purposeFor(response.req, page);
    const ip = addressOf(response.req);
    const deadline = performance.now() + this.config.signInPatience;
    const place = await this.throttle.take([{ kind: 'passkeys', of: ip }], deadline);
    return this.#counted(response, { way, method: 'passkey' }, async () => {
      if ('retryAfterSeconds' in place)
        return { fault: { reason: 'throttled', retryAfterSeconds: place.retryAfterSeconds } };
      const signedIn = await this.ceremonies.signIn(form.credential, purpose, ip).catch((error: unknown) => {
        place.withdraw();
        throw error;
      });
      await place.settle(signedIn ? 'signed-in' : 'failed');
      return signedIn ?? { fault: { reason: 'unproven' } };
    });
  }

  /** Counts a sign-in by its result, and remembers the browser of who is signed in. */
  async #counted(
    response: Response,
    labels: Pick<Labels, 'way' | 'method'>,
    attempt: () => Promise<SignedIn | SignInRefusal>,
  ): Promise<SignedIn | SignInRefusal> {
    const count = (result: Labels['result']) => this.meter.count('sign_ins_total', { ...labels, result });
    const result = await attempt().catch((error: unknown) => {
      count('failed');
      throw error;
    });
    if ('fault' in result) count(result.fault.reason === 'unproven' ? 'invalid' : result.fault.reason);
    else {
      count('signed-in');
      this.devices.issue(response.req, response, result.userId);
    }
    return result;
  }
}
