import { Module } from '@nestjs/common';
import { Csrf } from './csrf.js';
import { SignInThrottle } from './sign-in-throttle.js';
import { SignIn } from './sign-in.service.js';

/** The platform's users as people who sign in. */
@Module({ providers: [Csrf, SignIn, SignInThrottle], exports: [Csrf, SignIn] })
export class AccountsModule {}
