import { Requests, type CallOptions, type Found, type Query, type RequestSettings } from './requests.js';
import type {
  Achievement,
  AchievementDetail,
  AchievementStatistics,
  AllAchievementsQuery,
  ChangedProfile,
  Changes,
  Connection,
  ConnectionsQuery,
  Credential,
  EarnedAchievementsQuery,
  Event,
  EventDetail,
  EventsQuery,
  Me,
  Pagination,
  Profile,
  ProfileChanges,
  ProfileUpdated,
  SyncQuery,
} from './schema.js';

/** Query for earned achievements. */
export type EarnedQuery = EarnedAchievementsQuery;

/** A page of a list, as the API returns it. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly pagination: Pagination;
}

/**
 * A list of the member's data. `for await (const item of list)` yields all items and loads pages as needed; `page` returns one page.
 */
export class List<T> implements AsyncIterable<T> {
  constructor(private readonly read: (cursor: string | undefined) => Promise<Page<T>>) {}

  /** Returns the first page, or the page at a cursor (`pagination.next_cursor`, `prev_cursor`). */
  page(cursor?: string): Promise<Page<T>> {
    return this.read(cursor);
  }

  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    for (let cursor: string | undefined; ;) {
      const page = await this.read(cursor);
      yield page;
      if (page.pagination.next_cursor === null) return;
      cursor = page.pagination.next_cursor;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const { data } of this.pages()) yield* data;
  }
}

/** The API for the member whose credentials are used. Every method throws {@link ApiError} if the API rejects the request. */
export class PublicUserApi {
  readonly #requests: Requests;

  constructor(settings: RequestSettings) {
    this.#requests = new Requests(settings);
  }

  /** Needs the scope `profile:read`. */
  me(options?: CallOptions): Promise<Me> {
    return this.#get('/me', {}, options);
  }

  /** The profile with its counts. Needs the scope `profile:read`. */
  profile(options?: CallOptions): Promise<Profile> {
    return this.#get('/profile', {}, options);
  }

  /** The profile and its ETag: with the ETag, {@link updateProfile} fails if the profile has changed in the meantime. */
  profileWithEtag(options?: CallOptions): Promise<Found<Profile>> {
    return this.#requests.call('/profile', {}, options);
  }

  /**
   * Changes the fields in `changes`, all or none; null clears a field. Needs the scope `profile:write`.
   *
   * @throws ApiError `precondition_failed` if the profile has changed since `ifMatch`
   */
  async updateProfile(
    changes: ProfileChanges,
    options: CallOptions & { readonly ifMatch?: string } = {},
  ): Promise<ChangedProfile> {
    const sent = { ...options, method: 'PUT' as const, body: changes };
    const { value } = await this.#requests.call<ProfileUpdated>('/profile', {}, sent);
    return value.profile;
  }

  /** Needs the scope `events:read`, as {@link event} does. */
  events(query: EventsQuery = {}, options?: CallOptions): List<Event> {
    return this.#list('/events', { ...query }, options);
  }

  event(id: number, options?: CallOptions): Promise<EventDetail> {
    return this.#get(`/events/${id}`, {}, options);
  }

  /** Needs the scope `connections:read`. */
  connections(query: ConnectionsQuery = {}, options?: CallOptions): List<Connection> {
    return this.#list('/connections', { ...query }, options);
  }

  /** The achievements that the member has earned. Needs the scope `achievements:read`, as do all calls for achievements. */
  achievements(query: EarnedQuery = {}, options?: CallOptions): List<Achievement> {
    return this.#list('/achievements', { ...query }, options);
  }

  /**
   * The records to read again or delete, to keep a copy of the member's data up to date. Without a cursor, returns the first cursor. Any
   * credential.
   *
   * @throws ApiError `cursor_expired`: read everything again
   */
  changes(query: SyncQuery = {}, options?: CallOptions): Promise<Changes> {
    return this.#get('/sync', { ...query }, options);
  }

  /** All achievements, earned or not. */
  allAchievements(query: AllAchievementsQuery = {}, options?: CallOptions): List<Achievement> {
    return this.#list('/achievements/all', { ...query }, options);
  }

  /** The pinned achievements, at most six, in the member's order. */
  async pinnedAchievements(options?: CallOptions): Promise<readonly Achievement[]> {
    return (await this.#get<Page<Achievement>>('/achievements/pinned', {}, options)).data;
  }

  achievement(id: number, options?: CallOptions): Promise<AchievementDetail> {
    return this.#get(`/achievements/${id}`, {}, options);
  }

  achievementStatistics(options?: CallOptions): Promise<AchievementStatistics> {
    return this.#get('/achievements/stats', {}, options);
  }

  /** The credential's kind, and its permitted requests. */
  credential(options?: CallOptions): Promise<Credential> {
    return this.#get('/credential', {}, options);
  }

  async #get<T>(path: string, query: Query, options?: CallOptions): Promise<T> {
    return (await this.#requests.call<T>(path, query, options)).value;
  }

  #list<T>(path: string, query: Query, options?: CallOptions): List<T> {
    return new List((cursor) =>
      this.#get(path, cursor === undefined ? query : { ...query, cursor }, options),
    );
  }
}
