// Rows → responses of the API, as hand-written in front of node-postgres.
import { TIERS, computedAt, paginate, percentage, rarityOf, time } from './shared.mjs';

const LIMIT = 20;

export function profile(row) {
  return {
    id: row.id,
    username: row.username,
    display_name: row.display_name,
    bio: row.bio,
    profile_picture: row.profile_picture,
    created_at: time(row.created_at),
    achievements_count: row.achievements_count,
    connections_count: row.connections_count,
  };
}

export function events(rows, total) {
  return {
    data: rows.slice(0, LIMIT).map((row) => ({
      id: row.id,
      title: row.title,
      summary: row.summary,
      status: row.status,
      visibility: row.visibility,
      starts_at: time(row.starts_at),
      ends_at: time(row.ends_at),
      timezone: row.timezone,
      starts_at_local: row.starts_at_local,
      ends_at_local: row.ends_at_local,
      is_all_day: row.is_all_day,
      is_online: row.is_online,
      location:
        (row.location_name ?? row.location_city ?? row.location_country_code)
          ? { name: row.location_name, city: row.location_city, country_code: row.location_country_code }
          : null,
      cover_image: row.cover_image,
      organizer: {
        id: row.organizer_id,
        username: row.organizer_username,
        display_name: row.organizer_display_name,
        profile_picture: row.organizer_profile_picture,
      },
      role: row.role,
      rsvp_status: row.rsvp_status,
      attendees_count: row.attendees_count,
      capacity: row.capacity,
      created_at: time(row.created_at),
      updated_at: time(row.updated_at),
    })),
    pagination: paginate(rows, LIMIT, total, '-starts_at', (row) => [row.starts_at, row.id]),
  };
}

export function connections(rows, total) {
  return {
    data: rows.slice(0, LIMIT).map((row) => ({
      id: row.id,
      user: {
        id: row.peer_id,
        username: row.username,
        display_name: row.display_name,
        profile_picture: row.profile_picture,
      },
      status: row.status,
      requested_at: time(row.requested_at),
      connected_at: time(row.connected_at),
      source: row.source,
      met_at_event: row.met_id === null ? null : { id: row.met_id, title: row.met_title },
    })),
    pagination: paginate(rows, LIMIT, total, '-connected_at', (row) => [row.connected_at, row.id]),
  };
}

export function achievements(rows, total, pins) {
  return {
    data: rows.slice(0, LIMIT).map((row) => ({
      id: row.id,
      key: row.key,
      name: row.name,
      description: row.description,
      icon_url: row.icon_url,
      category: row.category,
      rarity: rarityOf(row.earners_count, row.active_users_count),
      rarity_percentage: percentage(row.earners_count, row.active_users_count),
      points: row.points,
      is_hidden: row.is_hidden,
      earned: true,
      earned_at: time(row.earned_at),
      progress:
        row.target === null
          ? null
          : {
              current: row.progress,
              target: row.target,
              percentage: percentage(Math.min(row.progress, row.target), row.target),
            },
      is_pinned: row.pin_position !== null,
      pin_position: row.pin_position === null ? null : pins.filter((pin) => pin <= row.pin_position).length,
    })),
    pagination: paginate(rows, LIMIT, total, '-earned_at', (row) => [row.earned_at, row.id]),
  };
}

/** @param rows every achievement that the member can see, in the order of ids */
export function statistics(rows) {
  const byCategory = new Map();
  const byRarity = new Map(TIERS.map((tier) => [tier.rarity, { ...tier, total: 0, earned: 0 }]));
  const sum = { total: 0, earned: 0, points_earned: 0, points_total: 0 };
  const share = (row) => percentage(row.earners_count, row.active_users_count);
  let last = null;
  let rarest = null;
  for (const row of rows) {
    const earned = row.earned_at === null ? 0 : 1;
    const rarity = rarityOf(row.earners_count, row.active_users_count);
    let category = byCategory.get(row.category);
    if (!category) byCategory.set(row.category, (category = { category: row.category, total: 0, earned: 0 }));
    for (const group of [sum, category, byRarity.get(rarity)]) {
      group.total++;
      group.earned += earned;
    }
    sum.points_total += row.points;
    if (earned === 0) continue;
    sum.points_earned += row.points;
    if (last === null || row.earned_at > last) last = row.earned_at;
    if (rarest === null || share(row) < share(rarest)) rarest = row;
  }
  const complete = (group) => ({ ...group, completion_percentage: percentage(group.earned, group.total) });
  return {
    ...complete(sum),
    last_earned_at: time(last),
    by_category: [...byCategory.values()].sort((a, b) => (a.category < b.category ? -1 : 1)).map(complete),
    by_rarity: [...byRarity.values()].map(complete),
    rarest_earned: rarest && {
      id: rarest.id,
      name: rarest.name,
      rarity: rarityOf(rarest.earners_count, rarest.active_users_count),
      rarity_percentage: share(rarest),
    },
    rarity_computed_at: computedAt(),
  };
}
