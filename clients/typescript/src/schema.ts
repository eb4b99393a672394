// Made by `npm run types` from the OpenAPI document.

export interface Endpoint {
  readonly method: "GET" | "PUT";
  /** For example `/api/public/events/{id}`. */
  readonly path: string;
  /** null: any credential. */
  readonly scope: string | null;
  /** Whether this credential has the scope. */
  readonly allowed: boolean;
}

export interface Credential {
  readonly type: "api_key" | "oauth_token";
  /** The member whose data it opens. */
  readonly user_id: number;
  /** What it may do. */
  readonly scopes: readonly ("profile:read" | "profile:write" | "events:read" | "connections:read" | "achievements:read")[];
  /** Of the app that got the token; null of a key. */
  readonly client_id: string | null;
  /** The part of the key that may be shown; null of a token. */
  readonly key_id: string | null;
  /** null: it does not expire. */
  readonly expires_at: string | null;
  readonly created_at: string;
  /** Every call that takes a credential. */
  readonly endpoints: readonly (Endpoint)[];
}

export interface ProblemDefinition {
  /** What programs decide by. */
  readonly code: string;
  readonly status: number;
  readonly title: string;
  /** What went wrong. */
  readonly meaning: string;
  /** What to do about it. */
  readonly fix: string;
}

export interface ProblemCatalogue {
  readonly data: readonly (ProblemDefinition)[];
}

export interface Me {
  readonly id: number;
  /** Unique on the platform. */
  readonly username: string;
  /** As the member wrote it. */
  readonly first_name: string | null;
  /** As the member wrote it. */
  readonly last_name: string | null;
  readonly display_name: string;
  /** Address of an image. */
  readonly profile_picture: string | null;
}

export interface Profile {
  readonly id: number;
  /** Unique on the platform. */
  readonly username: string;
  /** The platform’s; first and last name or the username where it has none. */
  readonly display_name: string;
  /** What the member says of themselves. */
  readonly bio: string | null;
  /** Address of an image. */
  readonly profile_picture: string | null;
  /** When the member joined. For example `2026-01-31 18:00:00`. */
  readonly created_at: string;
  /** `pagination.total` of the default achievements list. */
  readonly achievements_count: number;
  /** `pagination.total` of the default connections list. */
  readonly connections_count: number;
}

export interface ProfileChanges {
  /** For example `Ada`. */
  readonly first_name?: string | null;
  readonly last_name?: string | null;
  readonly bio?: string | null;
  readonly profile_picture?: string | null;
}

export interface ChangedProfile {
  readonly id: number;
  /** Unique on the platform. */
  readonly username: string;
  /** As the member wrote it. */
  readonly first_name: string | null;
  /** As the member wrote it. */
  readonly last_name: string | null;
  readonly display_name: string;
  /** What the member says of themselves. */
  readonly bio: string | null;
  /** Address of an image. */
  readonly profile_picture: string | null;
}

export interface ProfileUpdated {
  readonly message: "Profile updated.";
  readonly profile: ChangedProfile;
}

export interface Pagination {
  /** Items of a page at most. */
  readonly limit: number;
  /** Items of this page. */
  readonly count: number;
  /** Items of all pages, exact. */
  readonly total: number;
  /** Whether a next page exists. */
  readonly has_more: boolean;
  /** Place of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Place of the page before; null on the first. */
  readonly prev_cursor: string | null;
  /** Order of the list. */
  readonly sort: string;
}

export interface EventLocation {
  /** Of the place. */
  readonly name: string | null;
  readonly city: string | null;
  /** ISO 3166-1 alpha-2. */
  readonly country_code: string | null;
}

export interface UserCard {
  readonly id: number;
  /** Unique on the platform. */
  readonly username: string;
  readonly display_name: string;
  /** Address of an image. */
  readonly profile_picture: string | null;
}

export interface Event {
  readonly id: number;
  readonly title: string;
  /** A line or two, for lists. */
  readonly summary: string | null;
  /** draft: only for those who organise it. */
  readonly status: "draft" | "scheduled" | "ongoing" | "completed" | "cancelled";
  /** Who finds it on the platform; here it is seen by those who have a relation to it, whatever it says. */
  readonly visibility: "public" | "unlisted" | "private";
  /** UTC. For example `2026-01-31 18:00:00`. */
  readonly starts_at: string;
  /** UTC; null where no end is known: past once it has started. */
  readonly ends_at: string | null;
  /** IANA name. For example `Europe/Berlin`. */
  readonly timezone: string;
  /** null where there is no place, or it is not known. */
  readonly location: EventLocation | null;
  /** `starts_at` in `timezone`. For example `2026-01-31 18:00:00`. */
  readonly starts_at_local: string;
  /** `ends_at` in `timezone`. */
  readonly ends_at_local: string | null;
  /** Its days count, not its hours. */
  readonly is_all_day: boolean;
  /** It takes place online. */
  readonly is_online: boolean;
  /** Address of an image. */
  readonly cover_image: string | null;
  /** Whose event it is. */
  readonly organizer: UserCard;
  /** Of the member. */
  readonly role: "organizer" | "co_organizer" | "attendee" | "invitee";
  /** Of the member; null for organizers. */
  readonly rsvp_status: "going" | "maybe" | "waitlisted" | "pending" | "declined" | null;
  /** All whose answer is going. */
  readonly attendees_count: number;
  /** How many can come; null: any number. */
  readonly capacity: number | null;
  /** When it was made. For example `2026-01-31 18:00:00`. */
  readonly created_at: string;
  /** When the event itself last changed. For example `2026-01-31 18:00:00`. */
  readonly updated_at: string;
}

export interface EventLocationDetail {
  /** Of the place. */
  readonly name: string | null;
  readonly city: string | null;
  /** ISO 3166-1 alpha-2. */
  readonly country_code: string | null;
  /** Street and number. */
  readonly address: string | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
}

export interface EventDetail {
  readonly id: number;
  readonly title: string;
  /** A line or two, for lists. */
  readonly summary: string | null;
  /** draft: only for those who organise it. */
  readonly status: "draft" | "scheduled" | "ongoing" | "completed" | "cancelled";
  /** Who finds it on the platform; here it is seen by those who have a relation to it, whatever it says. */
  readonly visibility: "public" | "unlisted" | "private";
  /** UTC. For example `2026-01-31 18:00:00`. */
  readonly starts_at: string;
  /** UTC; null where no end is known: past once it has started. */
  readonly ends_at: string | null;
  /** IANA name. For example `Europe/Berlin`. */
  readonly timezone: string;
  /** null where there is no place, or it is not known. */
  readonly location: EventLocationDetail | null;
  /** `starts_at` in `timezone`. For example `2026-01-31 18:00:00`. */
  readonly starts_at_local: string;
  /** `ends_at` in `timezone`. */
  readonly ends_at_local: string | null;
  /** Its days count, not its hours. */
  readonly is_all_day: boolean;
  /** It takes place online. */
  readonly is_online: boolean;
  /** Address of an image. */
  readonly cover_image: string | null;
  /** Whose event it is. */
  readonly organizer: UserCard;
  /** Of the member. */
  readonly role: "organizer" | "co_organizer" | "attendee" | "invitee";
  /** Of the member; null for organizers. */
  readonly rsvp_status: "going" | "maybe" | "waitlisted" | "pending" | "declined" | null;
  /** All whose answer is going. */
  readonly attendees_count: number;
  /** How many can come; null: any number. */
  readonly capacity: number | null;
  /** When it was made. For example `2026-01-31 18:00:00`. */
  readonly created_at: string;
  /** When the event itself last changed. For example `2026-01-31 18:00:00`. */
  readonly updated_at: string;
  /** The whole text. */
  readonly description: string | null;
  /** Words that describe it. */
  readonly tags: readonly (string)[];
  /** Only for organizers and those who are going. */
  readonly online_url: string | null;
  /** Never below 0; null without a capacity. */
  readonly spots_left: number | null;
  /** When the member answered. */
  readonly responded_at: string | null;
  /** When the member came in. */
  readonly checked_in_at: string | null;
  /** Who organises it with the organizer. */
  readonly co_organizers: readonly (UserCard)[];
  /** null unless it was cancelled. */
  readonly cancelled_at: string | null;
  /** In the words of who cancelled it. */
  readonly cancellation_reason: string | null;
}

export interface MetAtEvent {
  readonly id: number;
  readonly title: string;
}

export interface Connection {
  readonly id: number;
  /** The other person. */
  readonly user: UserCard;
  /** pending_sent: the member asked; pending_received: the member was asked. */
  readonly status: "accepted" | "pending_sent" | "pending_received";
  /** When one asked the other. */
  readonly requested_at: string;
  /** null while it is pending. */
  readonly connected_at: string | null;
  /** How they found each other. */
  readonly source: "event" | "search" | "invite" | "import" | null;
  /** null too where the member has no access to the event. */
  readonly met_at_event: MetAtEvent | null;
}

export interface AchievementProgress {
  /** How far the member is. */
  readonly current: number;
  /** What it takes. */
  readonly target: number;
  /** 2 decimals. */
  readonly percentage: number;
}

/** A hidden one that is not earned has its name, key, description, icon and progress masked. */
export interface Achievement {
  readonly id: number;
  /** Its name for programs; null where it has none, or is masked. */
  readonly key: string | null;
  readonly name: string;
  readonly description: string | null;
  /** Address of an image. */
  readonly icon_url: string | null;
  /** A word of the platform. */
  readonly category: string;
  /** common from 50 %, uncommon 20, rare 5, epic 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: "common" | "uncommon" | "rare" | "epic" | "legendary" | "unrated";
  /** 2 decimals. */
  readonly rarity_percentage: number | null;
  /** What it is worth. */
  readonly points: number;
  /** Masked until it is earned. */
  readonly is_hidden: boolean;
  readonly earned: boolean;
  /** null where it is not earned. */
  readonly earned_at: string | null;
  /** null where it has no target. */
  readonly progress: AchievementProgress | null;
  /** Among those that the member shows first. */
  readonly is_pinned: boolean;
  /** 1 is shown first; null where it is not pinned. */
  readonly pin_position: number | null;
}

export interface CategoryCompletion {
  readonly total: number;
  readonly earned: number;
  /** 2 decimals. */
  readonly completion_percentage: number;
  /** A word of the platform. */
  readonly category: string;
}

export interface RarityCompletion {
  readonly total: number;
  readonly earned: number;
  /** 2 decimals. */
  readonly completion_percentage: number;
  /** common from 50 %, uncommon 20, rare 5, epic 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: "common" | "uncommon" | "rare" | "epic" | "legendary" | "unrated";
  /** Inclusive. */
  readonly min_percentage: number | null;
  /** Exclusive, but for 100. */
  readonly max_percentage: number | null;
}

export interface RarestEarned {
  readonly id: number;
  readonly name: string;
  /** common from 50 %, uncommon 20, rare 5, epic 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: "common" | "uncommon" | "rare" | "epic" | "legendary" | "unrated";
  /** 2 decimals. */
  readonly rarity_percentage: number | null;
}

export interface AchievementStatistics {
  readonly total: number;
  readonly earned: number;
  /** 2 decimals. */
  readonly completion_percentage: number;
  /** Of all that the member has earned. */
  readonly points_earned: number;
  /** Of all that there are. */
  readonly points_total: number;
  /** null where nothing is earned. */
  readonly last_earned_at: string | null;
  /** Alphabetical. */
  readonly by_category: readonly (CategoryCompletion)[];
  /** common … legendary, then unrated. */
  readonly by_rarity: readonly (RarityCompletion)[];
  /** null where nothing is earned. */
  readonly rarest_earned: RarestEarned | null;
  /** When the rarities were computed. */
  readonly rarity_computed_at: string;
}

export interface AchievementDetail {
  readonly id: number;
  /** Its name for programs; null where it has none, or is masked. */
  readonly key: string | null;
  readonly name: string;
  readonly description: string | null;
  /** Address of an image. */
  readonly icon_url: string | null;
  /** A word of the platform. */
  readonly category: string;
  /** common from 50 %, uncommon 20, rare 5, epic 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: "common" | "uncommon" | "rare" | "epic" | "legendary" | "unrated";
  /** 2 decimals. */
  readonly rarity_percentage: number | null;
  /** What it is worth. */
  readonly points: number;
  /** Masked until it is earned. */
  readonly is_hidden: boolean;
  readonly earned: boolean;
  /** null where it is not earned. */
  readonly earned_at: string | null;
  /** null where it has no target. */
  readonly progress: AchievementProgress | null;
  /** Among those that the member shows first. */
  readonly is_pinned: boolean;
  /** 1 is shown first; null where it is not pinned. */
  readonly pin_position: number | null;
  /** What has to be done. */
  readonly criteria: string | null;
  /** Active members who earned it. */
  readonly earned_by_count: number;
  /** Active members. */
  readonly eligible_users_count: number;
  /** When the rarities were computed. */
  readonly rarity_computed_at: string;
}

export interface Change {
  /** Where it is read. */
  readonly resource: "profile" | "events" | "connections" | "achievements";
  /** Of the event, connection or achievement; of a profile, the member’s. */
  readonly id: number;
  /** updated: it is new, or something of it is; removed: it is in the member’s lists no more. */
  readonly kind: "updated" | "removed";
}

export interface Changes {
  /** Each thing once, in the order in which they changed last. */
  readonly data: readonly (Change)[];
  /** Where to go on from. */
  readonly next: string;
  /** Whether there is more to read at once. */
  readonly more: boolean;
  /** What the response is about: of what was asked, what the credential may read. */
  readonly resources: readonly ("profile" | "events" | "connections" | "achievements")[];
}

/** RFC 9457. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: "invalid_json" | "invalid_parameter" | "unknown_parameter" | "missing_parameter" | "invalid_cursor" | "ambiguous_credentials" | "missing_credentials" | "invalid_credentials" | "insufficient_scope" | "wrong_credential_kind" | "api_key_in_browser" | "ip_not_allowed" | "not_found" | "event_not_found" | "achievement_not_found" | "method_not_allowed" | "not_acceptable" | "idempotency_conflict" | "cursor_expired" | "precondition_failed" | "payload_too_large" | "unsupported_media_type" | "validation_failed" | "rate_limited" | "internal_error" | "temporarily_unavailable";
  readonly request_id: string;
  readonly errors?: readonly ({ readonly pointer: string; readonly field: string | null; readonly code: string; readonly detail: string; readonly max?: number; readonly actual?: number } | { readonly parameter: string; readonly code: string; readonly detail: string; readonly allowed?: readonly (string)[] })[];
  readonly required_scope?: "profile:read" | "profile:write" | "events:read" | "connections:read" | "achievements:read";
  readonly granted_scopes?: readonly (string)[];
  readonly retry_after?: number;
}

export interface EventsQuery {
  /** How many items at most. Default: `20`. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` of an answer to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. Default: `-starts_at`. */
  readonly sort?: "-starts_at" | "starts_at" | "created_at" | "-created_at" | "updated_at" | "-updated_at" | "title" | "-title" | undefined;
  /** upcoming: not started; ongoing: started, not past its end; past: all others. Default: `all`. */
  readonly time_filter?: "all" | "upcoming" | "ongoing" | "past" | undefined;
  /** Events that start at this moment or later. */
  readonly starts_after?: string | undefined;
  /** Events that start before this moment. */
  readonly starts_before?: string | undefined;
  /** Only events in one of these states; for several, repeat the parameter or separate them by commas. */
  readonly status?: readonly ("draft" | "scheduled" | "ongoing" | "completed" | "cancelled")[] | undefined;
  /** Only events in which the member has one of these roles; for several, repeat the parameter or separate them by commas. */
  readonly role?: readonly ("organizer" | "co_organizer" | "attendee" | "invitee")[] | undefined;
  /** Only events to which the member answered so; for several, repeat the parameter or separate them by commas. */
  readonly rsvp_status?: readonly ("going" | "maybe" | "waitlisted" | "pending" | "declined")[] | undefined;
  /** Only online events, or only others. */
  readonly is_online?: boolean | undefined;
  /** Case-insensitive substring of the title. */
  readonly q?: string | undefined;
  /** Events whose `updated_at` is this moment or later, and those that changed here after it, the member’s own role and answer included: ask with the `Date` of the last answer and nothing is missed. */
  readonly updated_since?: string | undefined;
}

export interface ConnectionsQuery {
  /** How many items at most. Default: `20`. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` of an answer to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. Default: `-connected_at`. */
  readonly sort?: "-connected_at" | "connected_at" | "display_name" | "-display_name" | undefined;
  /** Case-insensitive substring of the other person’s username or display name. */
  readonly q?: string | undefined;
  /** Only connections in one of these states; for several, repeat the parameter or separate them by commas. Default: `accepted`. */
  readonly status?: readonly ("accepted" | "pending_sent" | "pending_received")[] | undefined;
  /** Connected at this moment or later. */
  readonly connected_after?: string | undefined;
  /** Connected before this moment. */
  readonly connected_before?: string | undefined;
  /** Only connections made in one of these ways; for several, repeat the parameter or separate them by commas. */
  readonly source?: readonly ("event" | "search" | "invite" | "import")[] | undefined;
}

export interface AchievementsQuery {
  /** How many items at most. Default: `20`. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` of an answer to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. Default: `-earned_at`. */
  readonly sort?: "-earned_at" | "earned_at" | "name" | "rarity_percentage" | "-rarity_percentage" | "position" | "-progress" | undefined;
  /** Only achievements in one of these categories; for several, repeat the parameter or separate them by commas. */
  readonly category?: readonly (string)[] | undefined;
  /** Only achievements of one of these rarities; for several, repeat the parameter or separate them by commas. */
  readonly rarity?: readonly ("common" | "uncommon" | "rare" | "epic" | "legendary" | "unrated")[] | undefined;
  /** Earned at this moment or later. */
  readonly earned_after?: string | undefined;
  /** Earned before this moment. */
  readonly earned_before?: string | undefined;
  /** Case-insensitive substring of the name. */
  readonly q?: string | undefined;
  /** What is asked of the achievements. */
  readonly action?: "all" | "stats" | "detail" | "pinned" | undefined;
  /** Only what the member has earned, or has not. */
  readonly earned?: boolean | undefined;
  /** With action=detail: the achievement. */
  readonly id?: number | undefined;
}

export interface SyncQuery {
  /** How many changes at most. Default: `100`. */
  readonly limit?: number | undefined;
  /** `next` of the last response; without it the response has no change, but a place to start from. */
  readonly cursor?: string | undefined;
  /** Only changes of these; a cursor is good for the ones that it was made for; for several, repeat the parameter or separate them by commas. */
  readonly resources?: readonly ("profile" | "events" | "connections" | "achievements")[] | undefined;
}
