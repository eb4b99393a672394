import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { AccountDataController, Downloads } from './account-data.controller.js';
import { PersonalData } from './personal-data.js';

@Module({
  imports: [AuthModule],
  controllers: [AccountDataController],
  providers: [PersonalData, { provide: Downloads, useFactory: () => new Downloads() }],
})
export class PersonalDataModule {}
