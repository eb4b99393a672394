import { Inject, Injectable } from '@nestjs/common';
import { DataSource, In, IsNull, Not } from 'typeorm';
import { statistics } from '../answers.mjs';
import { paginate } from '../shared.mjs';
import { AchievementAnswer, ConnectionAnswer, EventAnswer, ListAnswer, ProfileAnswer } from './answers.js';
import {
  Achievement,
  Connection,
  Participant,
  PlatformTotals,
  User,
  UserAchievement,
  UserTotals,
} from './entities.js';

const LIMIT = 20;

/** What a member may see of the events that the member has a relation to. */
const visible = (user_id: number) => [
  { user_id, event: { deleted_at: IsNull(), status: Not('draft') } },
  { user_id, event: { deleted_at: IsNull() }, role: In(['organizer', 'co_organizer']) },
];

@Injectable()
export class MemberService {
  constructor(@Inject(DataSource) private readonly dataSource: DataSource) {}

  async profile(id: number): Promise<ProfileAnswer> {
    const users = this.dataSource.getRepository(User);
    return new ProfileAnswer(await users.findOneOrFail({ where: { id }, relations: { totals: true } }));
  }

  async events(userId: number): Promise<ListAnswer<EventAnswer>> {
    const rows = await this.dataSource.getRepository(Participant).find({
      where: visible(userId),
      relations: { event: { organizer: true } },
      order: { starts_at: 'DESC', event_id: 'ASC' },
      take: LIMIT + 1,
    });
    const { events_count } = await this.#totals(userId);
    const page = rows.slice(0, LIMIT).map((row) => new EventAnswer(row));
    const place = (row: Participant) => [row.starts_at, row.event_id];
    return new ListAnswer(page, paginate(rows, LIMIT, events_count, '-starts_at', place));
  }

  async connections(userId: number): Promise<ListAnswer<ConnectionAnswer>> {
    const rows = await this.dataSource.getRepository(Connection).find({
      where: { user_id: userId, status: 'accepted', peer: { disabled_at: IsNull() } },
      relations: { peer: true },
      order: { connected_at: 'DESC', id: 'ASC' },
      take: LIMIT + 1,
    });
    const ids = rows.flatMap((row) => row.met_at_event_id ?? []);
    const met = await this.dataSource.getRepository(Participant).find({
      where: visible(userId).map((where) => ({ ...where, event_id: In(ids) })),
      relations: { event: true },
    });
    const { connections_count } = await this.#totals(userId);
    const page = rows.slice(0, LIMIT).map(
      (row) =>
        new ConnectionAnswer(
          row,
          met.find((one) => one.event_id === row.met_at_event_id),
        ),
    );
    const place = (row: Connection) => [row.connected_at, row.id];
    return new ListAnswer(page, paginate(rows, LIMIT, connections_count, '-connected_at', place));
  }

  async achievements(userId: number): Promise<ListAnswer<AchievementAnswer>> {
    const own = this.dataSource.getRepository(UserAchievement);
    const rows = await own.find({
      where: { user_id: userId, earned_at: Not(IsNull()) },
      relations: { achievement: true },
      order: { earned_at: 'DESC', achievement_id: 'ASC' },
      take: LIMIT + 1,
    });
    const pinned = await own.find({ where: { user_id: userId, pin_position: Not(IsNull()) } });
    const pins = pinned.map((row) => row.pin_position!);
    const active = await this.#activeUsers();
    const { achievements_count } = await this.#totals(userId);
    const page = rows.slice(0, LIMIT).map((row) => new AchievementAnswer(row.achievement, row, pins, active));
    const place = (row: UserAchievement) => [row.earned_at, row.achievement_id];
    return new ListAnswer(page, paginate(rows, LIMIT, achievements_count, '-earned_at', place));
  }

  async statistics(userId: number): Promise<object> {
    const all = await this.dataSource.getRepository(Achievement).find({ order: { id: 'ASC' } });
    const own = await this.dataSource.getRepository(UserAchievement).find({ where: { user_id: userId } });
    const active_users_count = await this.#activeUsers();
    const earned = new Map(own.map((row) => [row.achievement_id, row.earned_at]));
    return statistics(
      all
        .map((row) => ({ ...row, earned_at: earned.get(row.id) ?? null, active_users_count }))
        .filter((row) => row.retired_at === null || row.earned_at !== null),
    );
  }

  #totals(user_id: number): Promise<UserTotals> {
    return this.dataSource.getRepository(UserTotals).findOneByOrFail({ user_id });
  }

  async #activeUsers(): Promise<number> {
    return (await this.dataSource.getRepository(PlatformTotals).findOneByOrFail({})).active_users_count;
  }
}
