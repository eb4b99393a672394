import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { CalendarFiles } from './calendar-files.js';
import { CalendarLinks } from './calendar-links.js';
import { CalendarController } from './calendar.controller.js';

@Module({
  imports: [AuthModule],
  controllers: [CalendarController],
  providers: [CalendarFiles, CalendarLinks],
  exports: [CalendarLinks],
})
export class CalendarModule {}
