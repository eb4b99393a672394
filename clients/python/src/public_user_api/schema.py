"""Made by generate_types.py from the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


CredentialKind = Literal['api_key', 'oauth_token']


Scope = Literal['profile:read', 'profile:write', 'events:read', 'connections:read', 'achievements:read']


class Endpoint(TypedDict):
    method: str
    path: str
    scope: str | None
    """Required scope; null if any credential is accepted"""
    allowed: bool
    """Whether this credential has the scope"""


class Credential(TypedDict):
    type: CredentialKind
    user_id: int
    """The member whose data the credential can access"""
    scopes: list[Scope]
    """Granted scopes"""
    client_id: str | None
    """The app that the token was issued to; null for a key"""
    key_id: str | None
    """The part of the key that is not secret; null for a token"""
    expires_at: str | None
    """null if it does not expire"""
    access_ends_at: str | None
    """End of the access that the member gave; a refresh does not change it; null if it has no end. For a key, the same as expires_at"""
    created_at: str
    endpoints: list[Endpoint]
    """All requests that require a credential"""


class ProblemDefinition(TypedDict):
    code: str
    """Stable name of the error, for programs"""
    status: int
    title: str
    meaning: str
    """What went wrong"""
    fix: str
    """How to fix it"""


class ProblemCatalogue(TypedDict):
    data: list[ProblemDefinition]


ProblemCode = Literal['invalid_json', 'invalid_parameter', 'unknown_parameter', 'missing_parameter', 'invalid_cursor', 'ambiguous_credentials', 'missing_credentials', 'invalid_credentials', 'insufficient_scope', 'wrong_credential_kind', 'api_key_in_browser', 'origin_not_allowed', 'ip_not_allowed', 'not_found', 'event_not_found', 'achievement_not_found', 'method_not_allowed', 'not_acceptable', 'idempotency_conflict', 'cursor_expired', 'precondition_failed', 'payload_too_large', 'unsupported_media_type', 'validation_failed', 'rate_limited', 'internal_error', 'temporarily_unavailable']


class Me(TypedDict):
    id: int
    username: str
    """Unique on the platform"""
    first_name: str | None
    """As written by the member"""
    last_name: str | None
    """As written by the member"""
    display_name: str
    profile_picture: str | None
    """URL of an image"""


class Profile(TypedDict):
    id: int
    username: str
    """Unique on the platform"""
    display_name: str
    """The name set on the platform; otherwise first and last name, or the username"""
    bio: str | None
    """What the member says about themselves"""
    profile_picture: str | None
    """URL of an image"""
    created_at: str
    """When the member joined"""
    achievements_count: int
    """Equals `pagination.total` of the default achievements list"""
    connections_count: int
    """Equals `pagination.total` of the default connections list"""


class ProfileChanges(TypedDict):
    first_name: NotRequired[str | None]
    last_name: NotRequired[str | None]
    bio: NotRequired[str | None]
    profile_picture: NotRequired[str | None]


class ChangedProfile(TypedDict):
    id: int
    username: str
    """Unique on the platform"""
    first_name: str | None
    """As written by the member"""
    last_name: str | None
    """As written by the member"""
    display_name: str
    bio: str | None
    """What the member says about themselves"""
    profile_picture: str | None
    """URL of an image"""


class ProfileUpdated(TypedDict):
    message: Literal['Profile updated.']
    profile: ChangedProfile


EventStatus = Literal['draft', 'scheduled', 'ongoing', 'completed', 'cancelled']


EventRole = Literal['organizer', 'co_organizer', 'attendee', 'invitee']


RsvpStatus = Literal['going', 'maybe', 'waitlisted', 'pending', 'declined']


EventVisibility = Literal['public', 'unlisted', 'private']


class EventLocation(TypedDict):
    name: str | None
    """Name of the venue"""
    city: str | None
    country_code: str | None
    """ISO 3166-1 alpha-2"""


class UserCard(TypedDict):
    id: int
    username: str
    """Unique on the platform"""
    display_name: str
    profile_picture: str | None
    """URL of an image"""


class Event(TypedDict):
    id: int
    title: str
    summary: str | None
    """Summary of one or two lines, for lists"""
    status: EventStatus
    """draft: visible only to the people who organize the event"""
    visibility: EventVisibility
    """Who can find the event on the platform. In this API, only members with a role in the event see it, regardless of this value"""
    starts_at: str
    """UTC"""
    ends_at: str | None
    """UTC; null if the end is unknown: the event is then past once it has started"""
    timezone: str
    """IANA time zone"""
    location: EventLocation | None
    """null if there is no venue, or it is not known"""
    starts_at_local: str
    """`starts_at` in `timezone`"""
    ends_at_local: str | None
    """`ends_at` in `timezone`"""
    is_all_day: bool
    """Whether only the dates of the start and end matter, not the times"""
    is_online: bool
    """Whether the event takes place online"""
    cover_image: str | None
    """URL of an image"""
    organizer: UserCard
    """The event’s organizer"""
    role: EventRole
    """The member’s role in the event"""
    rsvp_status: RsvpStatus | None
    """The member’s response; null for organizers and co-organizers"""
    attendees_count: int
    """Number of people who are going"""
    capacity: int | None
    """Maximum number of attendees; null if there is no limit"""
    created_at: str
    """When the event was created"""
    updated_at: str
    """When the event itself last changed"""


class Pagination(TypedDict):
    limit: int
    """Maximum number of items per page"""
    count: int
    """Number of items on this page"""
    total: int
    """Exact number of items on all pages together"""
    has_more: bool
    """Whether there is a next page"""
    next_cursor: str | None
    """Cursor of the next page; null on the last page"""
    prev_cursor: str | None
    """Cursor of the previous page; null on the first page"""
    sort: str
    """Sort order of the list"""


class EventPage(TypedDict):
    data: list[Event]
    """The items of this page, in the order of the list"""
    pagination: Pagination


class EventLocationDetail(TypedDict):
    name: str | None
    """Name of the venue"""
    city: str | None
    country_code: str | None
    """ISO 3166-1 alpha-2"""
    address: str | None
    """Street and number"""
    latitude: float | None
    longitude: float | None


class EventDetail(TypedDict):
    id: int
    title: str
    summary: str | None
    """Summary of one or two lines, for lists"""
    status: EventStatus
    """draft: visible only to the people who organize the event"""
    visibility: EventVisibility
    """Who can find the event on the platform. In this API, only members with a role in the event see it, regardless of this value"""
    starts_at: str
    """UTC"""
    ends_at: str | None
    """UTC; null if the end is unknown: the event is then past once it has started"""
    timezone: str
    """IANA time zone"""
    location: EventLocationDetail | None
    """null if there is no venue, or it is not known"""
    starts_at_local: str
    """`starts_at` in `timezone`"""
    ends_at_local: str | None
    """`ends_at` in `timezone`"""
    is_all_day: bool
    """Whether only the dates of the start and end matter, not the times"""
    is_online: bool
    """Whether the event takes place online"""
    cover_image: str | None
    """URL of an image"""
    organizer: UserCard
    """The event’s organizer"""
    role: EventRole
    """The member’s role in the event"""
    rsvp_status: RsvpStatus | None
    """The member’s response; null for organizers and co-organizers"""
    attendees_count: int
    """Number of people who are going"""
    capacity: int | None
    """Maximum number of attendees; null if there is no limit"""
    created_at: str
    """When the event was created"""
    updated_at: str
    """When the event itself last changed"""
    description: str | None
    """The full description"""
    tags: list[str]
    """Keywords"""
    online_url: str | None
    """Only for organizers and members who are going; otherwise null"""
    spots_left: int | None
    """Number of free places, never below 0; null without a capacity"""
    responded_at: str | None
    """When the member responded to the invitation"""
    checked_in_at: str | None
    """When the member checked in"""
    co_organizers: list[UserCard]
    """The people who organize the event with the organizer"""
    cancelled_at: str | None
    """null unless the event was cancelled"""
    cancellation_reason: str | None
    """Reason given by the person who cancelled the event"""


ConnectionStatus = Literal['accepted', 'pending_sent', 'pending_received']


ConnectionSource = Literal['event', 'search', 'invite', 'import']


class MetAtEvent(TypedDict):
    id: int
    title: str
    city: str | None


class Connection(TypedDict):
    id: int
    user: UserCard
    """The other person"""
    status: ConnectionStatus
    """pending_sent: the member sent the request; pending_received: the other person did"""
    requested_at: str
    """When the request was sent"""
    connected_at: str | None
    """null while the request is pending"""
    source: ConnectionSource | None
    """How the two people found each other"""
    met_at_event: MetAtEvent | None
    """Also null if the member has no access to the event"""


class ConnectionPage(TypedDict):
    data: list[Connection]
    """The items of this page, in the order of the list"""
    pagination: Pagination


Rarity = Literal['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated']


class AchievementProgress(TypedDict):
    current: int
    """Number that the member has reached so far"""
    target: int
    """Number that the member must reach to earn the achievement"""
    percentage: float
    """2 decimals"""


class Achievement(TypedDict):
    """A hidden achievement that the member has not earned is masked: its name is replaced; key, description, icon and progress are null"""

    id: int
    key: str | None
    """Stable name for programs; null if absent or masked"""
    name: str
    description: str | None
    icon_url: str | None
    """URL of an image"""
    category: str
    """One of the platform’s categories"""
    rarity: Rarity
    """common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members"""
    rarity_percentage: float | None
    """2 decimals"""
    points: int
    """Points for earning the achievement"""
    is_hidden: bool
    """Whether the achievement is masked until the member earns it"""
    earned: bool
    earned_at: str | None
    """null if the member has not earned the achievement"""
    progress: AchievementProgress | None
    """null without a target"""
    is_pinned: bool
    """Whether the member has pinned the achievement, so that it is shown first"""
    pin_position: int | None
    """1 is shown first; null if the achievement is not pinned"""


class AchievementPage(TypedDict):
    data: list[Achievement]
    """The items of this page, in the order of the list"""
    pagination: Pagination


class CategoryCompletion(TypedDict):
    total: int
    earned: int
    completion_percentage: float
    """2 decimals"""
    category: str
    """One of the platform’s categories"""


class RarityCompletion(TypedDict):
    total: int
    earned: int
    completion_percentage: float
    """2 decimals"""
    rarity: Rarity
    """common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members"""
    min_percentage: float | None
    """Lower bound, inclusive"""
    max_percentage: float | None
    """Upper bound, exclusive except 100"""


class RarestEarned(TypedDict):
    id: int
    name: str
    rarity: Rarity
    """common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members"""
    rarity_percentage: float | None
    """2 decimals"""


class AchievementStatistics(TypedDict):
    total: int
    earned: int
    completion_percentage: float
    """2 decimals"""
    points_earned: int
    """Points of all achievements that the member has earned"""
    points_total: int
    """Points of all achievements"""
    last_earned_at: str | None
    """null if the member has earned nothing"""
    by_category: list[CategoryCompletion]
    """In alphabetical order"""
    by_rarity: list[RarityCompletion]
    """From common to legendary, then unrated"""
    rarest_earned: RarestEarned | None
    """null if the member has earned nothing"""
    rarity_computed_at: str
    """Time of the rarity computation"""


class AchievementDetail(TypedDict):
    id: int
    key: str | None
    """Stable name for programs; null if absent or masked"""
    name: str
    description: str | None
    icon_url: str | None
    """URL of an image"""
    category: str
    """One of the platform’s categories"""
    rarity: Rarity
    """common from 50 %, uncommon from 20, rare from 5, epic from 1, legendary below; unrated with fewer than 10 active members"""
    rarity_percentage: float | None
    """2 decimals"""
    points: int
    """Points for earning the achievement"""
    is_hidden: bool
    """Whether the achievement is masked until the member earns it"""
    earned: bool
    earned_at: str | None
    """null if the member has not earned the achievement"""
    progress: AchievementProgress | None
    """null without a target"""
    is_pinned: bool
    """Whether the member has pinned the achievement, so that it is shown first"""
    pin_position: int | None
    """1 is shown first; null if the achievement is not pinned"""
    criteria: str | None
    """Condition for earning it"""
    earned_by_count: int
    """Number of active members who have earned it"""
    eligible_users_count: int
    """Number of active members"""
    rarity_computed_at: str
    """Time of the rarity computation"""


Resource = Literal['profile', 'events', 'connections', 'achievements']


class Change(TypedDict):
    resource: Resource
    """The resource that changed"""
    id: int
    """Id of the event, connection or achievement; for a profile, id of the member"""
    kind: Literal['updated', 'removed']
    """updated: it is new or has changed; removed: it is no longer in the member’s lists"""
    data: NotRequired[Profile | EventDetail | Connection | AchievementDetail | None]
    """Only with `include=data`: the record, identical to `/profile`, `/events/{id}`, an item of `/connections` or `/achievements/{id}`; null if it was removed"""


class Changes(TypedDict):
    data: list[Change]
    """Each item once, in the order of its latest change"""
    next: str
    """Cursor for the next request"""
    more: bool
    """Whether there are more changes to read now"""
    resources: list[Resource]
    """The requested resources that the credential may read: the response covers only these"""


class ProblemDetail(TypedDict):
    """One fault of a request: a parameter, or a part of the body"""

    parameter: NotRequired[str]
    """The invalid parameter"""
    pointer: NotRequired[str]
    """The invalid part of the body: a JSON pointer as a fragment"""
    field: NotRequired[str | None]
    """With `pointer`: the name of the field; null if the whole body is wrong"""
    code: str
    """Kind of fault, for programs"""
    detail: str
    allowed: NotRequired[list[str]]
    """With `parameter`: its allowed values, if they are few"""
    fix: NotRequired[str]
    """With `parameter`: what to send instead of a parameter that other APIs have"""
    max: NotRequired[int]
    """Maximum length of the text"""
    actual: NotRequired[int]
    """Length of the text"""


class Problem(TypedDict):
    """RFC 9457"""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: ProblemCode
    request_id: str
    errors: NotRequired[list[ProblemDetail]]
    required_scope: NotRequired[Scope]
    granted_scopes: NotRequired[list[str]]
    retry_after: NotRequired[int]
    fix: NotRequired[str]
    """The first `fix` in `errors`"""


class EventsQuery(TypedDict):
    limit: NotRequired[int]
    """Maximum number of items per page"""
    cursor: NotRequired[str]
    """`next_cursor` or `prev_cursor` from a response to the same query"""
    sort: NotRequired[Literal['-starts_at', 'starts_at', 'created_at', '-created_at', 'updated_at', '-updated_at', 'title', '-title']]
    """Order; ties by ascending id"""
    time_filter: NotRequired[Literal['all', 'upcoming', 'ongoing', 'past']]
    """upcoming: not started; ongoing: started, but not ended; past: all others"""
    starts_after: NotRequired[str]
    """Only events that start at this time or later"""
    starts_before: NotRequired[str]
    """Only events that start before this time"""
    status: NotRequired[list[EventStatus]]
    """Only events in one of these states; for several, repeat the parameter or separate the values by commas"""
    role: NotRequired[list[EventRole]]
    """Only events in which the member has one of these roles; for several, repeat the parameter or separate the values by commas"""
    rsvp_status: NotRequired[list[RsvpStatus]]
    """Only events to which the member gave one of these responses; for several, repeat the parameter or separate the values by commas"""
    is_online: NotRequired[bool]
    """Only online events (`true`), or only others (`false`)"""
    q: NotRequired[str]
    """Case-insensitive substring of the title"""
    city: NotRequired[str]
    """Only events in this city, regardless of case"""
    country_code: NotRequired[str]
    """Only events in this country (ISO 3166-1 alpha-2)"""
    updated_since: NotRequired[str]
    """Only events that changed at this time or later, by `updated_at` or on this server, including the member’s own role and RSVP. To miss no change, pass the time of the previous response"""


class ConnectionsQuery(TypedDict):
    limit: NotRequired[int]
    """Maximum number of items per page"""
    cursor: NotRequired[str]
    """`next_cursor` or `prev_cursor` from a response to the same query"""
    sort: NotRequired[Literal['-connected_at', 'connected_at', 'display_name', '-display_name']]
    """Order; ties by ascending id"""
    q: NotRequired[str]
    """Case-insensitive substring of the other person’s username or display name"""
    status: NotRequired[list[ConnectionStatus]]
    """Only connections in one of these states; for several, repeat the parameter or separate the values by commas"""
    connected_after: NotRequired[str]
    """Only connections made at this time or later"""
    connected_before: NotRequired[str]
    """Only connections made before this time"""
    source: NotRequired[list[ConnectionSource]]
    """Only connections with one of these origins; for several, repeat the parameter or separate the values by commas"""
    met_at_event: NotRequired[int]
    """Only people whom the member met at the event with this id"""
    met_in_city: NotRequired[str]
    """Only people whom the member met at an event in this city, regardless of case"""
    updated_since: NotRequired[str]
    """Only connections that changed at this time or later, including the other person’s name and picture. To miss no change, pass the time of the previous response"""


class AchievementsQuery(TypedDict):
    action: NotRequired[Literal['all', 'stats', 'detail', 'pinned']]
    """View of the achievements to return; if absent, the earned ones"""
    limit: NotRequired[int]
    """Maximum number of items per page"""
    cursor: NotRequired[str]
    """`next_cursor` or `prev_cursor` from a response to the same query"""
    sort: NotRequired[Literal['-earned_at', 'earned_at', 'name', 'rarity_percentage', '-rarity_percentage', 'position', '-progress']]
    """Order; ties by ascending id"""
    category: NotRequired[list[str]]
    """Only achievements in one of these categories; for several, repeat the parameter or separate the values by commas"""
    rarity: NotRequired[list[Rarity]]
    """Only achievements of one of these rarities; for several, repeat the parameter or separate the values by commas"""
    earned_after: NotRequired[str]
    """Only achievements earned at this time or later"""
    earned_before: NotRequired[str]
    """Only achievements earned before this time"""
    q: NotRequired[str]
    """Case-insensitive substring of the name"""
    updated_since: NotRequired[str]
    """Only achievements that changed at this time or later, except changes of rarity, or of unearned achievements’ progress. To miss no change, pass the time of the previous response"""
    earned: NotRequired[bool]
    """Only achievements that the member has earned (`true`) or has not earned (`false`)"""
    id: NotRequired[int]
    """Id of the achievement; only with action=detail"""


class EarnedAchievementsQuery(TypedDict):
    limit: NotRequired[int]
    """Maximum number of items per page"""
    cursor: NotRequired[str]
    """`next_cursor` or `prev_cursor` from a response to the same query"""
    sort: NotRequired[Literal['-earned_at', 'earned_at', 'name', 'rarity_percentage', '-rarity_percentage']]
    """Order; ties by ascending id"""
    category: NotRequired[list[str]]
    """Only achievements in one of these categories; for several, repeat the parameter or separate the values by commas"""
    rarity: NotRequired[list[Rarity]]
    """Only achievements of one of these rarities; for several, repeat the parameter or separate the values by commas"""
    earned_after: NotRequired[str]
    """Only achievements earned at this time or later"""
    earned_before: NotRequired[str]
    """Only achievements earned before this time"""
    q: NotRequired[str]
    """Case-insensitive substring of the name"""
    updated_since: NotRequired[str]
    """Only achievements that changed at this time or later, except changes of rarity, or of unearned achievements’ progress. To miss no change, pass the time of the previous response"""


class AllAchievementsQuery(TypedDict):
    limit: NotRequired[int]
    """Maximum number of items per page"""
    cursor: NotRequired[str]
    """`next_cursor` or `prev_cursor` from a response to the same query"""
    sort: NotRequired[Literal['position', 'name', '-earned_at', 'rarity_percentage', '-progress']]
    """Order; ties by ascending id"""
    earned: NotRequired[bool]
    """Only achievements that the member has earned (`true`) or has not earned (`false`)"""
    category: NotRequired[list[str]]
    """Only achievements in one of these categories; for several, repeat the parameter or separate the values by commas"""
    rarity: NotRequired[list[Rarity]]
    """Only achievements of one of these rarities; for several, repeat the parameter or separate the values by commas"""
    updated_since: NotRequired[str]
    """Only achievements that changed at this time or later, except changes of rarity, or of unearned achievements’ progress. To miss no change, pass the time of the previous response"""


class SyncQuery(TypedDict):
    limit: NotRequired[int]
    """Maximum number of changes; with `include=data`, at most 100"""
    include: NotRequired[Literal['data']]
    """data: return each change with its record, so that no further request is necessary"""
    cursor: NotRequired[str]
    """`next` from the previous response; without it, the response has no changes, only a cursor to start from"""
    resources: NotRequired[list[Resource]]
    """Only changes of these resources; a cursor is valid only for the resources that it was issued for; for several, repeat the parameter or separate the values by commas"""
