import { Module } from '@nestjs/common';
import { WebhookSecrets, WebhookSender } from './webhook-sender.js';
import { WebhookWorker } from './webhook-worker.js';

/** Notifies receivers of changes (docs/webhooks.md). */
@Module({ providers: [WebhookSecrets, WebhookSender, WebhookWorker] })
export class WebhooksModule {}
