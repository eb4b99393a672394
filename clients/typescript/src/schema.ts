// Made by `npm run types` from the OpenAPI document.

export type CredentialKind = "api_key" | "oauth_token";

export type Scope = "profile:read" | "profile:write" | "events:read" | "connections:read" | "achievements:read";

export interface Endpoint {
  /** For example `GET`. */
  readonly method: string;
  /** For example `/api/public/events/{id}`. */
  readonly path: string;
  /** Required scope; null if any credential is accepted. */
  readonly scope: string | null;
  /** Whether this credential has the scope. */
  readonly allowed: boolean;
}

export interface Credential {
  readonly type: CredentialKind;
  /** The member whose data the credential can access. */
  readonly user_id: number;
  /** Granted scopes. */
  readonly scopes: readonly (Scope)[];
  /** The app that the token was issued to; null for a key. */
  readonly client_id: string | null;
  /** The part of the key that is not secret; null for a token. */
  readonly key_id: string | null;
  /** null if it does not expire. */
  readonly expires_at: string | null;
  /** End of the access that the member gave; a refresh does not change it; null if it has no end. For a key, the same as expires_at. */
  readonly access_ends_at: string | null;
  readonly created_at: string;
  /** All requests that require a credential. */
  readonly endpoints: readonly (Endpoint)[];
}

export interface ProblemDefinition {
  /** Stable name of the error, for programs. */
  readonly code: string;
  readonly status: number;
  readonly title: string;
  /** What went wrong. */
  readonly meaning: string;
  /** How to fix it. */
  readonly fix: string;
}

export interface ProblemCatalogue {
  readonly data: readonly (ProblemDefinition)[];
}

export type ProblemCode = "invalid_json" | "invalid_parameter" | "unknown_parameter" | "missing_parameter" | "invalid_cursor" | "ambiguous_credentials" | "missing_credentials" | "invalid_credentials" | "insufficient_scope" | "wrong_credential_kind" | "api_key_in_browser" | "origin_not_allowed" | "ip_not_allowed" | "not_found" | "event_not_found" | "achievement_not_found" | "method_not_allowed" | "not_acceptable" | "idempotency_conflict" | "cursor_expired" | "precondition_failed" | "payload_too_large" | "unsupported_media_type" | "validation_failed" | "rate_limited" | "internal_error" | "temporarily_unavailable";

export interface Me {
  readonly id: number;
  /** Unique on the platform. */
  readonly username: string;
  /** As written by the member. */
  readonly first_name: string | null;
  /** As written by the member. */
  readonly last_name: string | null;
  readonly display_name: string;
  /** URL of an image. */
  readonly profile_picture: string | null;
}

export interface Profile {
  readonly id: number;
  /** Unique on the platform. */
  readonly username: string;
  /** The name set on the platform; otherwise first and last name, or the username. */
  readonly display_name: string;
  /** What the member says about themselves. */
  readonly bio: string | null;
  /** URL of an image. */
  readonly profile_picture: string | null;
  /** When the member joined. For example `2026-01-31 18:00:00`. */
  readonly created_at: string;
  /** Equals `pagination.total` of the default achievements list. */
  readonly achievements_count: number;
  /** Equals `pagination.total` of the default connections list. */
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
  /** As written by the member. */
  readonly first_name: string | null;
  /** As written by the member. */
  readonly last_name: string | null;
  readonly display_name: string;
  /** What the member says about themselves. */
  readonly bio: string | null;
  /** URL of an image. */
  readonly profile_picture: string | null;
}

export interface ProfileUpdated {
  readonly message: "Profile updated.";
  readonly profile: ChangedProfile;
}

export type EventStatus = "draft" | "scheduled" | "ongoing" | "completed" | "cancelled";

export type EventRole = "organizer" | "co_organizer" | "attendee" | "invitee";

export type RsvpStatus = "going" | "maybe" | "waitlisted" | "pending" | "declined";

export type EventVisibility = "public" | "unlisted" | "private";

export interface EventLocation {
  /** Name of the venue. */
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
  /** URL of an image. */
  readonly profile_picture: string | null;
}

export interface Event {
  readonly id: number;
  readonly title: string;
  /** Summary of one or two lines, for lists. */
  readonly summary: string | null;
  /** draft: visible only to the people who organize the event. */
  readonly status: EventStatus;
  /** Who can find the event on the platform. In this API, only members with a role in the event see it, regardless of this value. */
  readonly visibility: EventVisibility;
  /** UTC. For example `2026-01-31 18:00:00`. */
  readonly starts_at: string;
  /** UTC; null if the end is unknown: the event is then past once it has started. */
  readonly ends_at: string | null;
  /** IANA time zone. For example `Europe/Berlin`. */
  readonly timezone: string;
  /** null if there is no venue, or it is not known. */
  readonly location: EventLocation | null;
  /** `starts_at` in `timezone`. For example `2026-01-31 18:00:00`. */
  readonly starts_at_local: string;
  /** `ends_at` in `timezone`. */
  readonly ends_at_local: string | null;
  /** Whether only the dates of the start and end matter, not the times. */
  readonly is_all_day: boolean;
  /** Whether the event takes place online. */
  readonly is_online: boolean;
  /** URL of an image. */
  readonly cover_image: string | null;
  /** The event’s organizer. */
  readonly organizer: UserCard;
  /** The member’s role in the event. */
  readonly role: EventRole;
  /** The member’s response; null for organizers and co-organizers. */
  readonly rsvp_status: RsvpStatus | null;
  /** Number of people who are going. */
  readonly attendees_count: number;
  /** Maximum number of attendees; null if there is no limit. */
  readonly capacity: number | null;
  /** When the event was created. For example `2026-01-31 18:00:00`. */
  readonly created_at: string;
  /** When the event itself last changed. For example `2026-01-31 18:00:00`. */
  readonly updated_at: string;
}

export interface Pagination {
  /** Maximum number of items per page. */
  readonly limit: number;
  /** Number of items on this page. */
  readonly count: number;
  /** Exact number of items on all pages together. */
  readonly total: number;
  /** Whether there is a next page. */
  readonly has_more: boolean;
  /** Cursor of the next page; null on the last page. */
  readonly next_cursor: string | null;
  /** Cursor of the previous page; null on the first page. */
  readonly prev_cursor: string | null;
  /** Sort order of the list. */
  readonly sort: string;
}

export interface EventPage {
  /** The items of this page, in the order of the list. */
  readonly data: readonly (Event)[];
  readonly pagination: Pagination;
}

export interface EventLocationDetail {
  /** Name of the venue. */
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
  /** Summary of one or two lines, for lists. */
  readonly summary: string | null;
  /** draft: visible only to the people who organize the event. */
  readonly status: EventStatus;
  /** Who can find the event on the platform. In this API, only members with a role in the event see it, regardless of this value. */
  readonly visibility: EventVisibility;
  /** UTC. For example `2026-01-31 18:00:00`. */
  readonly starts_at: string;
  /** UTC; null if the end is unknown: the event is then past once it has started. */
  readonly ends_at: string | null;
  /** IANA time zone. For example `Europe/Berlin`. */
  readonly timezone: string;
  /** null if there is no venue, or it is not known. */
  readonly location: EventLocationDetail | null;
  /** `starts_at` in `timezone`. For example `2026-01-31 18:00:00`. */
  readonly starts_at_local: string;
  /** `ends_at` in `timezone`. */
  readonly ends_at_local: string | null;
  /** Whether only the dates of the start and end matter, not the times. */
  readonly is_all_day: boolean;
  /** Whether the event takes place online. */
  readonly is_online: boolean;
  /** URL of an image. */
  readonly cover_image: string | null;
  /** The event’s organizer. */
  readonly organizer: UserCard;
  /** The member’s role in the event. */
  readonly role: EventRole;
  /** The member’s response; null for organizers and co-organizers. */
  readonly rsvp_status: RsvpStatus | null;
  /** Number of people who are going. */
  readonly attendees_count: number;
  /** Maximum number of attendees; null if there is no limit. */
  readonly capacity: number | null;
  /** When the event was created. For example `2026-01-31 18:00:00`. */
  readonly created_at: string;
  /** When the event itself last changed. For example `2026-01-31 18:00:00`. */
  readonly updated_at: string;
  /** The full description. */
  readonly description: string | null;
  /** Keywords. */
  readonly tags: readonly (string)[];
  /** Only for organizers and members who are going; otherwise null. */
  readonly online_url: string | null;
  /** Number of free places, never below 0; null without a capacity. */
  readonly spots_left: number | null;
  /** When the member responded to the invitation. */
  readonly responded_at: string | null;
  /** When the member checked in. */
  readonly checked_in_at: string | null;
  /** The people who organize the event with the organizer. */
  readonly co_organizers: readonly (UserCard)[];
  /** null unless the event was cancelled. */
  readonly cancelled_at: string | null;
  /** Reason given by the person who cancelled the event. */
  readonly cancellation_reason: string | null;
}

export type ConnectionStatus = "accepted" | "pending_sent" | "pending_received";

export type ConnectionSource = "event" | "search" | "invite" | "import";

export interface MetAtEvent {
  readonly id: number;
  readonly title: string;
  readonly city: string | null;
}

export interface Connection {
  readonly id: number;
  /** The other person. */
  readonly user: UserCard;
  /** pending_sent: the member sent the request; pending_received: the other person did. */
  readonly status: ConnectionStatus;
  /** When the request was sent. */
  readonly requested_at: string;
  /** null while the request is pending. */
  readonly connected_at: string | null;
  /** How the two people found each other. */
  readonly source: ConnectionSource | null;
  /** Also null if the member has no access to the event. */
  readonly met_at_event: MetAtEvent | null;
}

export interface ConnectionPage {
  /** The items of this page, in the order of the list. */
  readonly data: readonly (Connection)[];
  readonly pagination: Pagination;
}

export type Rarity = "common" | "uncommon" | "rare" | "epic" | "legendary" | "unrated";

export interface AchievementProgress {
  /** Number that the member has reached so far. */
  readonly current: number;
  /** Number that the member must reach to earn the achievement. */
  readonly target: number;
  /** 2 decimals. */
  readonly percentage: number;
}

/** A hidden achievement that the member has not earned is masked: its name is replaced; key, description, icon and progress are null. */
export interface Achievement {
  readonly id: number;
  /** Stable name for programs; null if absent or masked. */
  readonly key: string | null;
  readonly name: string;
  readonly description: string | null;
  /** URL of an image. */
  readonly icon_url: string | null;
  /** One of the platform’s categories. */
  readonly category: string;
  /** common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: Rarity;
  /** 2 decimals. */
  readonly rarity_percentage: number | null;
  /** Points for earning the achievement. */
  readonly points: number;
  /** Whether the achievement is masked until the member earns it. */
  readonly is_hidden: boolean;
  readonly earned: boolean;
  /** null if the member has not earned the achievement. */
  readonly earned_at: string | null;
  /** null without a target. */
  readonly progress: AchievementProgress | null;
  /** Whether the member has pinned the achievement, so that it is shown first. */
  readonly is_pinned: boolean;
  /** 1 is shown first; null if the achievement is not pinned. */
  readonly pin_position: number | null;
}

export interface AchievementPage {
  /** The items of this page, in the order of the list. */
  readonly data: readonly (Achievement)[];
  readonly pagination: Pagination;
}

export interface CategoryCompletion {
  readonly total: number;
  readonly earned: number;
  /** 2 decimals. */
  readonly completion_percentage: number;
  /** One of the platform’s categories. */
  readonly category: string;
}

export interface RarityCompletion {
  readonly total: number;
  readonly earned: number;
  /** 2 decimals. */
  readonly completion_percentage: number;
  /** common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: Rarity;
  /** Lower bound, inclusive. */
  readonly min_percentage: number | null;
  /** Upper bound, exclusive except 100. */
  readonly max_percentage: number | null;
}

export interface RarestEarned {
  readonly id: number;
  readonly name: string;
  /** common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: Rarity;
  /** 2 decimals. */
  readonly rarity_percentage: number | null;
}

export interface AchievementStatistics {
  readonly total: number;
  readonly earned: number;
  /** 2 decimals. */
  readonly completion_percentage: number;
  /** Points of all achievements that the member has earned. */
  readonly points_earned: number;
  /** Points of all achievements. */
  readonly points_total: number;
  /** null if the member has earned nothing. */
  readonly last_earned_at: string | null;
  /** In alphabetical order. */
  readonly by_category: readonly (CategoryCompletion)[];
  /** From common to legendary, then unrated. */
  readonly by_rarity: readonly (RarityCompletion)[];
  /** null if the member has earned nothing. */
  readonly rarest_earned: RarestEarned | null;
  /** Time of the rarity computation. */
  readonly rarity_computed_at: string;
}

export interface AchievementDetail {
  readonly id: number;
  /** Stable name for programs; null if absent or masked. */
  readonly key: string | null;
  readonly name: string;
  readonly description: string | null;
  /** URL of an image. */
  readonly icon_url: string | null;
  /** One of the platform’s categories. */
  readonly category: string;
  /** common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members. */
  readonly rarity: Rarity;
  /** 2 decimals. */
  readonly rarity_percentage: number | null;
  /** Points for earning the achievement. */
  readonly points: number;
  /** Whether the achievement is masked until the member earns it. */
  readonly is_hidden: boolean;
  readonly earned: boolean;
  /** null if the member has not earned the achievement. */
  readonly earned_at: string | null;
  /** null without a target. */
  readonly progress: AchievementProgress | null;
  /** Whether the member has pinned the achievement, so that it is shown first. */
  readonly is_pinned: boolean;
  /** 1 is shown first; null if the achievement is not pinned. */
  readonly pin_position: number | null;
  /** Condition for earning it. */
  readonly criteria: string | null;
  /** Number of active members who have earned it. */
  readonly earned_by_count: number;
  /** Number of active members. */
  readonly eligible_users_count: number;
  /** Time of the rarity computation. */
  readonly rarity_computed_at: string;
}

export type Resource = "profile" | "events" | "connections" | "achievements";

export interface Change {
  /** The resource that changed. */
  readonly resource: Resource;
  /** Id of the event, connection or achievement; for a profile, id of the member. */
  readonly id: number;
  /** updated: it is new or has changed; removed: it is no longer in the member’s lists. */
  readonly kind: "updated" | "removed";
  /** Only with `include=data`: the record, identical to `/profile`, `/events/{id}`, an item of `/connections` or `/achievements/{id}`; null if it was removed. */
  readonly data?: Profile | EventDetail | Connection | AchievementDetail | null;
}

export interface Changes {
  /** Each item once, in the order of its latest change. */
  readonly data: readonly (Change)[];
  /** Cursor for the next request. */
  readonly next: string;
  /** Whether there are more changes to read now. */
  readonly more: boolean;
  /** The requested resources that the credential may read: the response covers only these. */
  readonly resources: readonly (Resource)[];
}

/** One fault of a request: a parameter, or a part of the body. */
export interface ProblemDetail {
  /** The invalid parameter. */
  readonly parameter?: string;
  /** The invalid part of the body: a JSON pointer as a fragment. */
  readonly pointer?: string;
  /** With `pointer`: the name of the field; null if the whole body is wrong. */
  readonly field?: string | null;
  /** Kind of fault, for programs. */
  readonly code: string;
  readonly detail: string;
  /** With `parameter`: its allowed values, if they are few. */
  readonly allowed?: readonly (string)[];
  /** With `parameter`: what to send instead of a parameter that other APIs have. */
  readonly fix?: string;
  /** Maximum length of the text. */
  readonly max?: number;
  /** Length of the text. */
  readonly actual?: number;
}

/** RFC 9457. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: ProblemCode;
  readonly request_id: string;
  readonly errors?: readonly (ProblemDetail)[];
  readonly required_scope?: Scope;
  readonly granted_scopes?: readonly (string)[];
  readonly retry_after?: number;
  /** The first `fix` in `errors`. */
  readonly fix?: string;
}

export interface EventsQuery {
  /** Maximum number of items per page. Default: `20`. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` from a response to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. Default: `-starts_at`. */
  readonly sort?: "-starts_at" | "starts_at" | "created_at" | "-created_at" | "updated_at" | "-updated_at" | "title" | "-title" | undefined;
  /** upcoming: not started; ongoing: started, but not ended; past: all others. Default: `all`. */
  readonly time_filter?: "all" | "upcoming" | "ongoing" | "past" | undefined;
  /** Only events that start at this time or later. */
  readonly starts_after?: string | undefined;
  /** Only events that start before this time. */
  readonly starts_before?: string | undefined;
  /** Only events in one of these states; for several, repeat the parameter or separate the values by commas. */
  readonly status?: readonly (EventStatus)[] | undefined;
  /** Only events in which the member has one of these roles; for several, repeat the parameter or separate the values by commas. */
  readonly role?: readonly (EventRole)[] | undefined;
  /** Only events to which the member gave one of these responses; for several, repeat the parameter or separate the values by commas. */
  readonly rsvp_status?: readonly (RsvpStatus)[] | undefined;
  /** Only online events (`true`), or only others (`false`). */
  readonly is_online?: boolean | undefined;
  /** Case-insensitive substring of the title. */
  readonly q?: string | undefined;
  /** Only events in this city, regardless of case. */
  readonly city?: string | undefined;
  /** Only events in this country (ISO 3166-1 alpha-2). */
  readonly country_code?: string | undefined;
  /** Only events that changed at this time or later, by `updated_at` or on this server, including the member’s own role and RSVP. To miss no change, pass the time of the previous response. */
  readonly updated_since?: string | undefined;
}

export interface ConnectionsQuery {
  /** Maximum number of items per page. Default: `20`. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` from a response to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. Default: `-connected_at`. */
  readonly sort?: "-connected_at" | "connected_at" | "display_name" | "-display_name" | undefined;
  /** Case-insensitive substring of the other person’s username or display name. */
  readonly q?: string | undefined;
  /** Only connections in one of these states; for several, repeat the parameter or separate the values by commas. Default: `accepted`. */
  readonly status?: readonly (ConnectionStatus)[] | undefined;
  /** Only connections made at this time or later. */
  readonly connected_after?: string | undefined;
  /** Only connections made before this time. */
  readonly connected_before?: string | undefined;
  /** Only connections with one of these origins; for several, repeat the parameter or separate the values by commas. */
  readonly source?: readonly (ConnectionSource)[] | undefined;
  /** Only people whom the member met at the event with this id. */
  readonly met_at_event?: number | undefined;
  /** Only people whom the member met at an event in this city, regardless of case. */
  readonly met_in_city?: string | undefined;
  /** Only connections that changed at this time or later, including the other person’s name and picture. To miss no change, pass the time of the previous response. */
  readonly updated_since?: string | undefined;
}

export interface AchievementsQuery {
  /** View of the achievements to return; if absent, the earned ones. */
  readonly action?: "all" | "stats" | "detail" | "pinned" | undefined;
  /** Maximum number of items per page. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` from a response to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. */
  readonly sort?: "-earned_at" | "earned_at" | "name" | "rarity_percentage" | "-rarity_percentage" | "position" | "-progress" | undefined;
  /** Only achievements in one of these categories; for several, repeat the parameter or separate the values by commas. */
  readonly category?: readonly (string)[] | undefined;
  /** Only achievements of one of these rarities; for several, repeat the parameter or separate the values by commas. */
  readonly rarity?: readonly (Rarity)[] | undefined;
  /** Only achievements earned at this time or later. */
  readonly earned_after?: string | undefined;
  /** Only achievements earned before this time. */
  readonly earned_before?: string | undefined;
  /** Case-insensitive substring of the name. */
  readonly q?: string | undefined;
  /** Only achievements that changed at this time or later, except changes of rarity, or of unearned achievements’ progress. To miss no change, pass the time of the previous response. */
  readonly updated_since?: string | undefined;
  /** Only achievements that the member has earned (`true`) or has not earned (`false`). */
  readonly earned?: boolean | undefined;
  /** Id of the achievement; only with action=detail. */
  readonly id?: number | undefined;
}

export interface EarnedAchievementsQuery {
  /** Maximum number of items per page. Default: `20`. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` from a response to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. Default: `-earned_at`. */
  readonly sort?: "-earned_at" | "earned_at" | "name" | "rarity_percentage" | "-rarity_percentage" | undefined;
  /** Only achievements in one of these categories; for several, repeat the parameter or separate the values by commas. */
  readonly category?: readonly (string)[] | undefined;
  /** Only achievements of one of these rarities; for several, repeat the parameter or separate the values by commas. */
  readonly rarity?: readonly (Rarity)[] | undefined;
  /** Only achievements earned at this time or later. */
  readonly earned_after?: string | undefined;
  /** Only achievements earned before this time. */
  readonly earned_before?: string | undefined;
  /** Case-insensitive substring of the name. */
  readonly q?: string | undefined;
  /** Only achievements that changed at this time or later, except changes of rarity, or of unearned achievements’ progress. To miss no change, pass the time of the previous response. */
  readonly updated_since?: string | undefined;
}

export interface AllAchievementsQuery {
  /** Maximum number of items per page. Default: `20`. */
  readonly limit?: number | undefined;
  /** `next_cursor` or `prev_cursor` from a response to the same query. */
  readonly cursor?: string | undefined;
  /** Order; ties by ascending id. Default: `position`. */
  readonly sort?: "position" | "name" | "-earned_at" | "rarity_percentage" | "-progress" | undefined;
  /** Only achievements that the member has earned (`true`) or has not earned (`false`). */
  readonly earned?: boolean | undefined;
  /** Only achievements in one of these categories; for several, repeat the parameter or separate the values by commas. */
  readonly category?: readonly (string)[] | undefined;
  /** Only achievements of one of these rarities; for several, repeat the parameter or separate the values by commas. */
  readonly rarity?: readonly (Rarity)[] | undefined;
  /** Only achievements that changed at this time or later, except changes of rarity, or of unearned achievements’ progress. To miss no change, pass the time of the previous response. */
  readonly updated_since?: string | undefined;
}

export interface SyncQuery {
  /** Maximum number of changes; with `include=data`, at most 100. Default: `100`. */
  readonly limit?: number | undefined;
  /** data: return each change with its record, so that no further request is necessary. */
  readonly include?: "data" | undefined;
  /** `next` from the previous response; without it, the response has no changes, only a cursor to start from. */
  readonly cursor?: string | undefined;
  /** Only changes of these resources; a cursor is valid only for the resources that it was issued for; for several, repeat the parameter or separate the values by commas. */
  readonly resources?: readonly (Resource)[] | undefined;
}
