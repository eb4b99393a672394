import { Module } from '@nestjs/common';
import { NamesCopier } from './names-copier.js';

@Module({ providers: [NamesCopier] })
export class NamesModule {}
