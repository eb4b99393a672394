import { Module } from '@nestjs/common';
import { IconsController } from './icons.js';
import { Layout } from './layout.js';

@Module({ controllers: [IconsController], providers: [Layout], exports: [Layout] })
export class LayoutModule {}
