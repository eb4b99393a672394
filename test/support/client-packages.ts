import { signWebhook } from '../../src/crypto/webhook-signatures.js';
import type { OauthTest } from './oauth.js';

/** A member who organizes this many future events, and the member's API key. */
export async function organizer(oauth: OauthTest, events = 0) {
  const { id, username } = await oauth.member({ first_name: 'Ada' });
  for (let i = 0; i < events; i++) {
    const event = await oauth.api.platform.event({ organizer_id: id, title: `Event ${i}` });
    await oauth.api.platform.participant(event, id, { role: 'organizer' });
  }
  return { id, username, key: await oauth.api.key(id) };
}

/** The headers of a webhook message that was signed this many seconds ago, with another signature before the message's own. */
export function webhookHeaders(secret: string, body: string, secondsAgo = 0) {
  const signedAt = Math.floor(Date.now() / 1_000) - secondsAgo;
  return {
    'Webhook-Id': 'msg_1',
    'Webhook-Timestamp': String(signedAt),
    'Webhook-Signature': `v1,AAAA ${signWebhook(secret, 'msg_1', signedAt, body)}`,
  };
}
