import { Module } from '@nestjs/common';
import { Layout } from './layout.js';
import { StyleController } from './style.controller.js';

/** What all pages share. */
@Module({ controllers: [StyleController], providers: [Layout], exports: [Layout] })
export class LayoutModule {}
