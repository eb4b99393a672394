import { pathPattern } from '../../http/route-table.js';
import type { Texts } from './wording.js';

type Question = Exclude<keyof Texts['ask'], 'cancel'>;

/** Actions that require a confirmation: form route → question. Such a form uses `parts/ask.eta`, which works without a script. */
export const QUESTIONS: Readonly<Record<string, Question>> = {
  '/account/apps/leave': 'leaveTest',
  '/account/apps/revoke': 'revokeApp',
  '/account/calendar/:link/revoke': 'revokeLink',
  '/account/keys/:key/revoke': 'revokeKey',
  '/account/security/passkeys/:passkey/remove': 'removePasskey',
  '/account/security/password/off': 'switchPasswordOff',
  '/account/sessions/:session/end': 'endSession',
  '/account/sessions/end-others': 'endOthers',
  '/developer/clients/:client/delete': 'deleteApp',
  '/developer/clients/:client/disable': 'disableApp',
  '/developer/clients/:client/messages/:message/redeliver': 'redeliver',
  '/developer/clients/:client/remove-logo': 'removeLogo',
  '/developer/clients/:client/rotate-secret': 'rotateSecret',
  '/developer/keys/:key/revoke': 'revokeKey',
  '/developer/keys/:key/rotate': 'rotateKey',
  '/developer/review/:client/testers/remove': 'removeTester',
  '/developer/webhooks/:app/:webhook/delete': 'deleteWebhook',
  '/developer/webhooks/:app/:webhook/disable': 'disableWebhook',
  '/developer/webhooks/:app/:webhook/rotate': 'rotateWebhook',
};

const BY_PATH = Object.entries(QUESTIONS).map(([route, question]) => [pathPattern(route), question] as const);

/** Finds a form's question by its action. @throws Error if its route is not one of {@link QUESTIONS} */
export function questionOf(action: string): Question {
  const found = BY_PATH.find(([path]) => path.test(action));
  if (!found) throw new Error(`the form of ${action} has no question: add its route to QUESTIONS`);
  return found[1];
}
