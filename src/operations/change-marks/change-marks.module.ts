import { Module } from '@nestjs/common';
import { ChangeMarks } from './change-marks.service.js';

@Module({ providers: [ChangeMarks] })
export class ChangeMarksModule {}
