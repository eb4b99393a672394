import { expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { makeWebhookSecret, signWebhook } from './webhook-signatures.js';

const BODY = '{"type":"events.updated","data":{"title":"Zoë’s Küche"}}';

it('a webhook signature is verified by the published library, but not after a change of the message', () => {
  const secret = makeWebhookSecret();
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(secret, 'msg_1', timestamp, BODY),
  };
  const webhook = new Webhook(secret);
  expect(webhook.verify(BODY, headers)).toEqual(JSON.parse(BODY));
  expect(() => webhook.verify(`${BODY} `, headers)).toThrow('No matching signature');
  expect(() => webhook.verify(BODY, { ...headers, 'webhook-id': 'msg_2' })).toThrow('No matching signature');
  expect(() => new Webhook(makeWebhookSecret()).verify(BODY, headers)).toThrow('No matching signature');
});

it('a webhook signature equals the specification’s example', () => {
  expect(
    signWebhook(
      'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      1614265330,
      '{"test": 2432232314}',
    ),
  ).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

it('a webhook secret has 256 bits, and differs each time', () => {
  const secrets = Array.from({ length: 100 }, makeWebhookSecret);
  expect(new Set(secrets).size).toBe(100);
  for (const secret of secrets) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
});
