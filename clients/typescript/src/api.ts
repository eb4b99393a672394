import { Requests } from './requests.js';
import type { CallOptions, Found, Query, RequestSettings } from './requests.js';
import type {
  Achievement,
  AchievementDetail,
  AchievementsQuery,
  AchievementStatistics,
  ChangedProfile,
  Changes,
  Connection,
  ConnectionsQuery,
  Credential,
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

/** Of the achievements that the member has earned. */
export type EarnedQuery = Omit<AchievementsQuery, 'action' | 'id' | 'earned'>;
/** Of all achievements. */
export type AllAchievementsQuery = Pick<
  AchievementsQuery,
  'limit' | 'cursor' | 'sort' | 'earned' | 'category' | 'rarity'
>;

/** A page of a list, as the API answers it. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly pagination: Pagination;
}

/**
 * A list of the member's. `for await (const item of list)` gives all of it, page by page as it is asked for; `page` gives one.
 */
export class List<T> implements AsyncIterable<T> {
  constructor(private readonly read: (cursor: string | undefined) => Promise<Page<T>>) {}

  /** One page: the first, or the one of a cursor (`pagination.next_cursor`, `prev_cursor`). */
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

/** The API as one member sees it; which member that is, the credentials say. Every method throws {@link ApiError} where it is refused. */
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

  /** The same with its ETag, for {@link updateProfile} to refuse what somebody else changed meanwhile. */
  profileWithEtag(options?: CallOptions): Promise<Found<Profile>> {
    return this.#requests.call('/profile', {}, options);
  }

  /**
   * Changes what `changes` names, all or nothing; null clears a field. Needs the scope `profile:write`.
   *
   * @throws ApiError `precondition_failed` where the profile changed since `ifMatch`
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

  /** Those that the member has earned. Needs the scope `achievements:read`, as all of achievements. */
  achievements(query: EarnedQuery = {}, options?: CallOptions): List<Achievement> {
    return this.#list('/achievements', { ...query }, options);
  }

  /**
   * What to read again, or drop, so that a copy of the member's data stays right. Without a cursor: a place to start from. Any
   * credential.
   *
   * @throws ApiError `cursor_expired` where everything is to be read anew
   */
  changes(query: SyncQuery = {}, options?: CallOptions): Promise<Changes> {
    return this.#get('/sync', { ...query }, options);
  }

  /** Earned or not. */
  allAchievements(query: AllAchievementsQuery = {}, options?: CallOptions): List<Achievement> {
    return this.#list('/achievements', { ...query, action: 'all' }, options);
  }

  /** At most six, in the member's order. */
  async pinnedAchievements(options?: CallOptions): Promise<readonly Achievement[]> {
    return (await this.#get<Page<Achievement>>('/achievements', { action: 'pinned' }, options)).data;
  }

  achievement(id: number, options?: CallOptions): Promise<AchievementDetail> {
    return this.#get('/achievements', { action: 'detail', id }, options);
  }

  achievementStatistics(options?: CallOptions): Promise<AchievementStatistics> {
    return this.#get('/achievements', { action: 'stats' }, options);
  }

  /** What the credential is, and which calls it may make. */
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
