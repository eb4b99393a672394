import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { CalendarModule } from '../calendar/calendar.module.js';
import { OauthModule } from '../oauth/oauth.module.js';
import { AccountDataController } from './account-data.controller.js';
import { PersonalData } from './personal-data.js';

@Module({
  imports: [AuthModule, CalendarModule, OauthModule],
  controllers: [AccountDataController],
  providers: [PersonalData],
})
export class PersonalDataModule {}
