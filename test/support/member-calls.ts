const calls = (prefix: string, queries: string) => queries.split(' ').map((query) => `${prefix}${query}`);

/** GET requests for a member’s data, with each sort and filter of the lists, below /api/public. */
export const CALLS = [
  '/me',
  '/profile',
  '/credential',
  ...calls(
    '/events?sort=',
    '-starts_at starts_at created_at -created_at updated_at -updated_at title -title',
  ),
  ...calls('/events?', 'time_filter=upcoming time_filter=ongoing time_filter=past starts_after=2026-01-01'),
  ...calls('/events?', 'starts_before=2026-01-01 status=draft,cancelled role=organizer rsvp_status=maybe'),
  ...calls('/events?', 'is_online=true q=event city=Berlin country_code=DE updated_since=2026-01-01'),
  '/events/7',
  ...calls('/connections?sort=', '-connected_at connected_at display_name -display_name'),
  ...calls(
    '/connections?',
    'q=member status=accepted,pending_sent connected_after=2020-01-01 connected_before=2030-01-01',
  ),
  ...calls('/connections?', 'source=event met_at_event=7 met_in_city=Berlin updated_since=2026-01-01'),
  ...calls('/achievements?sort=', '-earned_at earned_at name rarity_percentage -rarity_percentage'),
  ...calls('/achievements?', 'category=events rarity=rare earned_after=2020-01-01 earned_before=2030-01-01'),
  ...calls('/achievements?', 'q=achievement updated_since=2026-01-01'),
  ...calls('/achievements?action=all&sort=', 'position name -earned_at rarity_percentage -progress'),
  ...calls('/achievements?action=', 'all&earned=true all&updated_since=2026-01-01 stats detail&id=3 pinned'),
];
