import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Config } from '../config/config.js';
import { createLogger, Logger } from './logger.js';
import { Mailer } from './mailer.js';
import { Meter } from './meter.js';
import { PeriodicWork } from './periodic-work.js';
import { PublicHttps } from './public-https.js';

/** Services for every part of the server: log, email, metrics, periodic work and outgoing requests. */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [
    { provide: Logger, inject: [Config], useFactory: createLogger },
    Mailer,
    Meter,
    PeriodicWork,
    PublicHttps,
  ],
  exports: [Logger, Mailer, Meter, PublicHttps],
})
export class RuntimeModule {}
