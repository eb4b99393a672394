import { Exclude, Expose, Transform, Type } from 'class-transformer';
import { percentage, rarityOf, time } from '../shared.mjs';
import type { Achievement, Connection, Participant, User, UserAchievement } from './entities.js';

const Time = () => Transform(({ value }) => time(value as Date | null));

const formats = new Map<string, Intl.DateTimeFormat>();

function localTime(date: Date | null, timeZone: string): string | null {
  if (date === null) return null;
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
    formats.set(timeZone, format);
  }
  return format.format(date);
}

@Exclude()
export class ProfileAnswer {
  @Expose() id: number;
  @Expose() username: string;
  @Expose() display_name: string;
  @Expose() bio: string | null;
  @Expose() profile_picture: string | null;
  @Expose() @Time() created_at: Date;
  @Expose() achievements_count: number;
  @Expose() connections_count: number;

  constructor(user: User) {
    if (user) Object.assign(this, user, user.totals);
  }
}

@Exclude()
export class CardAnswer {
  @Expose() id: number;
  @Expose() username: string;
  @Expose() display_name: string;
  @Expose() profile_picture: string | null;

  constructor(user: User) {
    Object.assign(this, user);
  }
}

@Exclude()
export class EventAnswer {
  @Expose() id: number;
  @Expose() title: string;
  @Expose() summary: string | null;
  @Expose() status: string;
  @Expose() visibility: string;
  @Expose() @Time() starts_at: Date;
  @Expose() @Time() ends_at: Date | null;
  @Expose() timezone: string;
  @Expose() starts_at_local: string | null;
  @Expose() ends_at_local: string | null;
  @Expose() is_all_day: boolean;
  @Expose() is_online: boolean;
  @Expose() location: object | null;
  @Expose() cover_image: string | null;
  @Expose() @Type(() => CardAnswer) organizer: CardAnswer;
  @Expose() role: string;
  @Expose() rsvp_status: string | null;
  @Expose() attendees_count: number;
  @Expose() capacity: number | null;
  @Expose() @Time() created_at: Date;
  @Expose() @Time() updated_at: Date;

  constructor({ event, role, rsvp_status }: Participant) {
    Object.assign(this, event, { role, rsvp_status });
    this.organizer = new CardAnswer(event.organizer);
    this.starts_at_local = localTime(event.starts_at, event.timezone);
    this.ends_at_local = localTime(event.ends_at, event.timezone);
    const { location_name: name, location_city: city, location_country_code: country_code } = event;
    this.location = (name ?? city ?? country_code) ? { name, city, country_code } : null;
  }
}

@Exclude()
export class ConnectionAnswer {
  @Expose() id: number;
  @Expose() @Type(() => CardAnswer) user: CardAnswer;
  @Expose() status: string;
  @Expose() @Time() requested_at: Date;
  @Expose() @Time() connected_at: Date | null;
  @Expose() source: string | null;
  @Expose() met_at_event: object | null;

  constructor(connection: Connection, met: Participant | undefined) {
    Object.assign(this, connection);
    this.user = new CardAnswer(connection.peer);
    this.met_at_event = met ? { id: met.event.id, title: met.event.title } : null;
  }
}

@Exclude()
export class AchievementAnswer {
  @Expose() id: number;
  @Expose() key: string | null;
  @Expose() name: string;
  @Expose() description: string | null;
  @Expose() icon_url: string | null;
  @Expose() category: string;
  @Expose() rarity: string;
  @Expose() rarity_percentage: number;
  @Expose() points: number;
  @Expose() is_hidden: boolean;
  @Expose() earned: boolean;
  @Expose() @Time() earned_at: Date | null;
  @Expose() progress: object | null;
  @Expose() is_pinned: boolean;
  @Expose() pin_position: number | null;

  constructor(achievement: Achievement, own: UserAchievement, pins: number[], active: number) {
    const { target, earners_count } = achievement;
    Object.assign(this, achievement);
    this.rarity = rarityOf(earners_count, active);
    this.rarity_percentage = percentage(earners_count, active);
    this.earned = own.earned_at !== null;
    this.earned_at = own.earned_at;
    this.progress =
      target === null
        ? null
        : { current: own.progress, target, percentage: percentage(Math.min(own.progress, target), target) };
    const pin = own.pin_position;
    this.is_pinned = pin !== null;
    this.pin_position = pin === null ? null : pins.filter((other) => other <= pin).length;
  }
}

export class ListAnswer<Item> {
  constructor(
    readonly data: Item[],
    readonly pagination: object,
  ) {}
}
