import { Module } from '@nestjs/common';
import { Csrf } from './csrf.js';
import { DeviceCookies } from './device-cookies.js';
import { Mailer } from './mailer.js';
import { Passkeys } from './passkeys.js';
import { RefusalTime } from './refusal-time.js';
import { SignInThrottle } from './sign-in-throttle.js';
import { SignIn } from './sign-in.js';
import { UpstreamMembers } from './upstream-members.js';

/** Members as people who sign in: passwords, passkeys, throttling. */
@Module({
  providers: [Csrf, DeviceCookies, Mailer, Passkeys, RefusalTime, SignIn, SignInThrottle, UpstreamMembers],
  exports: [Csrf, DeviceCookies, Mailer, Passkeys, SignIn, SignInThrottle, UpstreamMembers],
})
export class AccountsModule {}
