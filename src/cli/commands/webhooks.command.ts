import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import { OperatorError } from '../../values/operator-error.js';
import { WebhookSender } from '../../webhooks/webhook-sender.js';
import {
  ALL_TYPES,
  CREDENTIAL_TYPES,
  WEBHOOK_TYPES,
  WebhooksService,
  type DeliveryDetails,
  type WebhookDetails,
} from '../../webhooks/webhooks.service.js';
import { overlapOption, parseKeyId } from '../arguments.js';
import { addTo } from '../command.js';
import { fields, named, note, table, withDetails } from '../output.js';

/** Adds `pua webhooks` and its commands. */
export function webhooksCommands(group: Command): void {
  const add = addTo(group);
  const ofReceiver = (...command: Parameters<typeof add>) =>
    add(...command).argument('<id>', 'id of the webhook endpoint');

  add(
    'create',
    'Register a webhook endpoint. Its secret is shown only once: stdout has only the secret; with --json, also the details',
    'pua webhooks create --url https://app.example/webhooks --types events.updated,events.removed --client demo',
  )
    .requiredOption(
      '--url <url>',
      'URL that receives messages: https, or http to this host outside production',
    )
    .requiredOption(
      '--types <list>',
      `message types, comma separated: ${WEBHOOK_TYPES.join(', ')}. With --client also ${CREDENTIAL_TYPES.client.join(', ')}. With --key also ${CREDENTIAL_TYPES.key.join(', ')}`,
      parseTypes,
    )
    .addOption(
      new Option(
        '--client <id>',
        'send messages about members who granted this app the type’s scope',
      ).conflicts(['key', 'platform']),
    )
    .addOption(
      new Option(
        '--key <id>',
        'send messages about the member of this API key, which must have the type’s scope',
      )
        .argParser(parseKeyId)
        .conflicts('platform'),
    )
    .option('--platform', 'send messages about all members, to the platform itself')
    .refuses(
      ({ client, key, platform }) =>
        client === undefined &&
        key === undefined &&
        !platform &&
        'name the owner of the endpoint: --client <id>, --key <id> or --platform',
    )
    .runs(async ({ get, print }, { url, types, client, key, json }) => {
      const webhooks = get(WebhooksService);
      const { id, secret } = await webhooks.create({
        url,
        types,
        clientId: client,
        keyId: key,
        actor: 'admin',
      });
      print(await withDetails(webhooks.find(id), { id, secret }), () => secret);
      if (!json)
        note(`The endpoint ${id} verifies messages with this secret. Test it: \`pua webhooks test ${id}\``);
    });

  add('list', 'List webhook endpoints, newest first', 'pua webhooks list').runs(async ({ get, print }) =>
    print({ data: await get(WebhooksService).list() }, ({ data }) => table(data, COLUMNS)),
  );

  ofReceiver(
    'show',
    'Show a webhook endpoint without its secret, and its last messages',
    'pua webhooks show wh_4fGh7Kq2LmPz9xQa',
  ).runs(async ({ get, print }, id) => {
    const webhook = await get(WebhooksService).find(id);
    const deliveries = await get(WebhooksService).deliveries(id);
    const messages = () => (deliveries.length > 0 ? `\n\n${table(deliveries, DELIVERY_COLUMNS)}` : '');
    print({ ...webhook, deliveries }, () => fields(webhook) + messages());
  });

  ofReceiver(
    'test',
    'Send a test message (type webhook.test) from this host, and print the response',
    'pua webhooks test wh_4fGh7Kq2LmPz9xQa',
  ).runs(async ({ get, print }, id) => {
    const { taken, status, error, seconds } = await get(WebhooksService).test(id, get(WebhookSender));
    const answer = status === null ? `nothing (${error})` : String(status);
    print(
      { id, taken, response_status: status, error, seconds: Number(seconds.toFixed(3)) },
      () => `${answer} after ${seconds.toFixed(3)} s`,
    );
    if (!taken)
      throw new OperatorError(
        `The endpoint did not accept the message: ${status === null ? `it sent no response (${error})` : `the response was ${status} instead of 2xx`}. Correct the endpoint, then test it again`,
      );
  });

  add(
    'redeliver',
    'Resend delivered or dead messages with the same ids; running servers send them immediately',
    'pua webhooks redeliver msg_0b5e6c1a9f3d4e2b8c7a6f5e4d3c2b1a',
  )
    .argument('<id>', 'id of a message, or of a webhook endpoint for all its dead messages')
    .runs(async ({ get, print }, id) => {
      const redelivered = await get(WebhooksService).redeliver(id, 'admin');
      print({ id, redelivered }, () => `${redelivered} ${redelivered === 1 ? 'message' : 'messages'}`);
    });

  ofReceiver(
    'rotate',
    'Create a new secret. During the overlap, both secrets sign messages. stdout contains only the new secret',
    'pua webhooks rotate wh_4fGh7Kq2LmPz9xQa --overlap 24h',
  )
    .addOption(overlapOption('both secrets sign; 0s: only the new one signs', '30d'))
    .runs(async ({ get, print }, id, { overlap }) => {
      const secret = await get(WebhooksService).rotate(id, overlap, 'admin');
      print(await withDetails(get(WebhooksService).find(id), { id, secret }), () => secret);
    });

  ofReceiver(
    'disable',
    'Disable a webhook endpoint permanently. If it is already disabled, nothing changes',
    'pua webhooks disable wh_4fGh7Kq2LmPz9xQa',
  )
    .option('--yes', 'skip the confirmation')
    .runs(async ({ get, print, confirm }, id) => {
      await confirm(`The endpoint ${id} would be disabled permanently.`, 'go on');
      const changed = await get(WebhooksService).disable(id, 'admin');
      const { disabled_at } = await get(WebhooksService).find(id);
      if (!changed) note(`${id} was already disabled at ${disabled_at} UTC`);
      print({ id, changed, disabled_at }, () => id);
    });
}

const COLUMNS: Record<string, (webhook: WebhookDetails) => string | number | null | readonly string[]> = {
  ID: ({ id }) => id,
  OWNER: ({ client_id, key_id }) =>
    client_id !== null ? `client ${client_id}` : key_id !== null ? `key ${key_id}` : 'platform',
  STATUS: ({ status }) => status,
  PENDING: ({ pending_count }) => pending_count,
  ...named('failing_since', 'types', 'url'),
};

const DELIVERY_COLUMNS: Record<string, (delivery: DeliveryDetails) => string | number | null> = {
  MESSAGE: ({ id }) => id,
  TYPE: ({ type }) => type,
  MEMBER: ({ member_id }) => member_id,
  ...named('status', 'attempts'),
  LAST: ({ attempted_at }) => attempted_at,
  RESPONSE: ({ response_status, error }) => response_status ?? error,
  MS: ({ duration_ms }) => duration_ms,
  NEXT: ({ next_attempt_at }) => next_attempt_at,
};

function parseTypes(text: string): string[] {
  const types = [...new Set(text.split(',').map((type) => type.trim()))];
  const unknown = types.find((type) => !ALL_TYPES.includes(type));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no type "${unknown}". The types are: ${ALL_TYPES.join(', ')}.`);
  return types;
}
