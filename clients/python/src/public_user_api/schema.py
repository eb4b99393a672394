"""Made by generate_types.py from the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Endpoint(TypedDict):
    method: Literal['GET', 'PUT']
    path: str
    scope: str | None
    allowed: bool


class Credential(TypedDict):
    type: Literal['api_key', 'oauth_token']
    user_id: int
    scopes: list[Literal['profile:read', 'profile:write', 'events:read', 'connections:read', 'achievements:read']]
    client_id: str | None
    key_id: str | None
    expires_at: str | None
    created_at: str
    endpoints: list[Endpoint]


class ProblemDefinition(TypedDict):
    code: str
    status: int
    title: str
    meaning: str
    fix: str


class ProblemCatalogue(TypedDict):
    data: list[ProblemDefinition]


class Me(TypedDict):
    id: int
    username: str
    first_name: str | None
    last_name: str | None
    display_name: str
    profile_picture: str | None


class Profile(TypedDict):
    id: int
    username: str
    display_name: str
    bio: str | None
    profile_picture: str | None
    created_at: str
    achievements_count: int
    connections_count: int


class ProfileChanges(TypedDict):
    first_name: NotRequired[str | None]
    last_name: NotRequired[str | None]
    bio: NotRequired[str | None]
    profile_picture: NotRequired[str | None]


class ChangedProfile(TypedDict):
    id: int
    username: str
    first_name: str | None
    last_name: str | None
    display_name: str
    bio: str | None
    profile_picture: str | None


class ProfileUpdated(TypedDict):
    message: Literal['Profile updated.']
    profile: ChangedProfile


class EventLocation(TypedDict):
    name: str | None
    city: str | None
    country_code: str | None


class UserCard(TypedDict):
    id: int
    username: str
    display_name: str
    profile_picture: str | None


class Event(TypedDict):
    id: int
    title: str
    summary: str | None
    status: Literal['draft', 'scheduled', 'ongoing', 'completed', 'cancelled']
    visibility: Literal['public', 'unlisted', 'private']
    starts_at: str
    ends_at: str | None
    timezone: str
    location: EventLocation | None
    starts_at_local: str
    ends_at_local: str | None
    is_all_day: bool
    is_online: bool
    cover_image: str | None
    organizer: Any
    role: Literal['organizer', 'co_organizer', 'attendee', 'invitee']
    rsvp_status: Literal['going', 'maybe', 'waitlisted', 'pending', 'declined'] | None
    attendees_count: int
    capacity: int | None
    created_at: str
    updated_at: str


class Pagination(TypedDict):
    limit: int
    count: int
    total: int
    has_more: bool
    next_cursor: str | None
    prev_cursor: str | None
    sort: str


class EventLocationDetail(TypedDict):
    name: str | None
    city: str | None
    country_code: str | None
    address: str | None
    latitude: float | None
    longitude: float | None


class EventDetail(TypedDict):
    id: int
    title: str
    summary: str | None
    status: Literal['draft', 'scheduled', 'ongoing', 'completed', 'cancelled']
    visibility: Literal['public', 'unlisted', 'private']
    starts_at: str
    ends_at: str | None
    timezone: str
    location: EventLocationDetail | None
    starts_at_local: str
    ends_at_local: str | None
    is_all_day: bool
    is_online: bool
    cover_image: str | None
    organizer: Any
    role: Literal['organizer', 'co_organizer', 'attendee', 'invitee']
    rsvp_status: Literal['going', 'maybe', 'waitlisted', 'pending', 'declined'] | None
    attendees_count: int
    capacity: int | None
    created_at: str
    updated_at: str
    description: str | None
    tags: list[str]
    online_url: str | None
    spots_left: int | None
    responded_at: str | None
    checked_in_at: str | None
    co_organizers: list[UserCard]
    cancelled_at: str | None
    cancellation_reason: str | None


class MetAtEvent(TypedDict):
    id: int
    title: str


class Connection(TypedDict):
    id: int
    user: Any
    status: Literal['accepted', 'pending_sent', 'pending_received']
    requested_at: str
    connected_at: str | None
    source: Literal['event', 'search', 'invite', 'import'] | None
    met_at_event: MetAtEvent | None


class AchievementProgress(TypedDict):
    current: int
    target: int
    percentage: float


class Achievement(TypedDict):
    """A hidden achievement that the member has not earned is masked: its name is replaced; key, description, icon and progress are null"""

    id: int
    key: str | None
    name: str
    description: str | None
    icon_url: str | None
    category: str
    rarity: Literal['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated']
    rarity_percentage: float | None
    points: int
    is_hidden: bool
    earned: bool
    earned_at: str | None
    progress: AchievementProgress | None
    is_pinned: bool
    pin_position: int | None


class CategoryCompletion(TypedDict):
    total: int
    earned: int
    completion_percentage: float
    category: str


class RarityCompletion(TypedDict):
    total: int
    earned: int
    completion_percentage: float
    rarity: Literal['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated']
    min_percentage: float | None
    max_percentage: float | None


class RarestEarned(TypedDict):
    id: int
    name: str
    rarity: Literal['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated']
    rarity_percentage: float | None


class AchievementStatistics(TypedDict):
    total: int
    earned: int
    completion_percentage: float
    points_earned: int
    points_total: int
    last_earned_at: str | None
    by_category: list[CategoryCompletion]
    by_rarity: list[RarityCompletion]
    rarest_earned: RarestEarned | None
    rarity_computed_at: str


class AchievementDetail(TypedDict):
    id: int
    key: str | None
    name: str
    description: str | None
    icon_url: str | None
    category: str
    rarity: Literal['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated']
    rarity_percentage: float | None
    points: int
    is_hidden: bool
    earned: bool
    earned_at: str | None
    progress: AchievementProgress | None
    is_pinned: bool
    pin_position: int | None
    criteria: str | None
    earned_by_count: int
    eligible_users_count: int
    rarity_computed_at: str


class Change(TypedDict):
    resource: Literal['profile', 'events', 'connections', 'achievements']
    id: int
    kind: Literal['updated', 'removed']


class Changes(TypedDict):
    data: list[Change]
    next: str
    more: bool
    resources: list[Literal['profile', 'events', 'connections', 'achievements']]


class Problem(TypedDict):
    """RFC 9457"""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: Literal['invalid_json', 'invalid_parameter', 'unknown_parameter', 'missing_parameter', 'invalid_cursor', 'ambiguous_credentials', 'missing_credentials', 'invalid_credentials', 'insufficient_scope', 'wrong_credential_kind', 'api_key_in_browser', 'ip_not_allowed', 'not_found', 'event_not_found', 'achievement_not_found', 'method_not_allowed', 'not_acceptable', 'idempotency_conflict', 'cursor_expired', 'precondition_failed', 'payload_too_large', 'unsupported_media_type', 'validation_failed', 'rate_limited', 'internal_error', 'temporarily_unavailable']
    request_id: str
    errors: NotRequired[list[dict[str, Any]]]
    required_scope: NotRequired[Literal['profile:read', 'profile:write', 'events:read', 'connections:read', 'achievements:read']]
    granted_scopes: NotRequired[list[str]]
    retry_after: NotRequired[int]


class EventsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    sort: NotRequired[Literal['-starts_at', 'starts_at', 'created_at', '-created_at', 'updated_at', '-updated_at', 'title', '-title']]
    time_filter: NotRequired[Literal['all', 'upcoming', 'ongoing', 'past']]
    starts_after: NotRequired[str]
    starts_before: NotRequired[str]
    status: NotRequired[list[Literal['draft', 'scheduled', 'ongoing', 'completed', 'cancelled']]]
    role: NotRequired[list[Literal['organizer', 'co_organizer', 'attendee', 'invitee']]]
    rsvp_status: NotRequired[list[Literal['going', 'maybe', 'waitlisted', 'pending', 'declined']]]
    is_online: NotRequired[bool]
    q: NotRequired[str]
    updated_since: NotRequired[str]


class ConnectionsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    sort: NotRequired[Literal['-connected_at', 'connected_at', 'display_name', '-display_name']]
    q: NotRequired[str]
    status: NotRequired[list[Literal['accepted', 'pending_sent', 'pending_received']]]
    connected_after: NotRequired[str]
    connected_before: NotRequired[str]
    source: NotRequired[list[Literal['event', 'search', 'invite', 'import']]]


class AchievementsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    sort: NotRequired[Literal['-earned_at', 'earned_at', 'name', 'rarity_percentage', '-rarity_percentage', 'position', '-progress']]
    category: NotRequired[list[str]]
    rarity: NotRequired[list[Literal['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated']]]
    earned_after: NotRequired[str]
    earned_before: NotRequired[str]
    q: NotRequired[str]
    action: NotRequired[Literal['all', 'stats', 'detail', 'pinned']]
    earned: NotRequired[bool]
    id: NotRequired[int]


class SyncQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]
    resources: NotRequired[list[Literal['profile', 'events', 'connections', 'achievements']]]
