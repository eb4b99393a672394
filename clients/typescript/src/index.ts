export * from './api.js';
export { ApiError } from './problem.js';
export { apiKey, bearer } from './requests.js';
export type { CallOptions, Credentials, Found, RequestSettings } from './requests.js';
export type * from './schema.js';
export { SignIn, SignInError } from './sign-in.js';
export type { SignInSettings, TokenStorage } from './sign-in.js';
export { verifyWebhook, WebhookError } from './webhooks.js';
export type { WebhookHeaders, WebhookMessage } from './webhooks.js';
