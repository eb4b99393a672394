import { Module } from '@nestjs/common';
import { WebhookSecrets, WebhookSender } from './webhook-sender.js';
import { WebhookWorker } from './webhook-worker.js';
import { WebhooksService } from './webhooks.service.js';

@Module({
  providers: [WebhookSecrets, WebhookSender, WebhookWorker, WebhooksService],
  exports: [WebhooksService],
})
export class WebhooksModule {}
