import { Module } from '@nestjs/common';
import { Csrf, DeviceCookies } from './browser-cookies.js';
import { Passkeys } from './sign-in/passkeys.js';
import { RefusalTime } from './passwords/refusal-time.js';
import { SignInThrottle } from './sign-in/sign-in-throttle.js';
import { SignIn } from './sign-in/sign-in.js';
import { UpstreamMembers } from './sign-in/upstream-members.js';
import { SignInMethods } from './sign-in/sign-in-methods.js';

/** Members as people who sign in: passwords, passkeys, throttling. */
@Module({
  providers: [
    Csrf,
    DeviceCookies,
    Passkeys,
    RefusalTime,
    SignIn,
    SignInThrottle,
    UpstreamMembers,
    SignInMethods,
  ],
  exports: [Csrf, DeviceCookies, Passkeys, SignIn, SignInThrottle, UpstreamMembers, SignInMethods],
})
export class AccountsModule {}
