import { Module } from '@nestjs/common';
import { Csrf } from './csrf.js';
import { DeviceCookies } from './device-cookies.js';
import { RefusalTime } from './refusal-time.js';
import { SignInThrottle } from './sign-in-throttle.js';
import { SignIn } from './sign-in.js';

/** The platform's users as people who sign in. */
@Module({
  providers: [Csrf, DeviceCookies, RefusalTime, SignIn, SignInThrottle],
  exports: [Csrf, DeviceCookies, SignIn],
})
export class AccountsModule {}
