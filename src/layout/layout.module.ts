import { Module } from '@nestjs/common';
import { Layout, StyleController } from './layout.js';

/** What all pages share. */
@Module({ controllers: [StyleController], providers: [Layout], exports: [Layout] })
export class LayoutModule {}
