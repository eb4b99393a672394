import { Module } from '@nestjs/common';
import { ChangeMarks } from './change-marks.js';

@Module({ providers: [ChangeMarks] })
export class ChangeMarksModule {}
