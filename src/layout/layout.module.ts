import { Module } from '@nestjs/common';
import { IconsController } from './icons.js';
import { Layout, StyleController } from './layout.js';

/** What all pages share. */
@Module({ controllers: [IconsController, StyleController], providers: [Layout], exports: [Layout] })
export class LayoutModule {}
