import { Module } from '@nestjs/common';
import { Csrf, DeviceCookies } from './browser-cookies.js';
import { RefusalTime } from './passwords/refusal-time.js';
import { SignInMethods } from './sign-in/sign-in-methods.js';
import { SignInThrottle } from './sign-in/sign-in-throttle.js';
import { SignIn } from './sign-in/sign-in.js';
import { UpstreamMembers } from './sign-in/upstream-members.js';

const SERVICES = [Csrf, DeviceCookies, SignIn, SignInMethods, SignInThrottle, UpstreamMembers];

@Module({ providers: [...SERVICES, RefusalTime], exports: SERVICES })
export class AccountsModule {}
