import { Module } from '@nestjs/common';
import { WebhookSender } from './webhook-sender.js';
import { WebhookWorker } from './webhook-worker.js';

/** Tells receivers what changed (docs/webhooks.md). */
@Module({ providers: [WebhookSender, WebhookWorker] })
export class WebhooksModule {}
