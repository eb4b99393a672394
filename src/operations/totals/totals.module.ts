import { Module } from '@nestjs/common';
import { TotalsFolder } from './totals-folder.js';

@Module({ providers: [TotalsFolder] })
export class TotalsModule {}
