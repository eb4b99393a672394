import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TokenKeys } from '../../crypto/hmac.js';
import { USE_ONCE } from '../../auth/access-tokens/dpop.js';
import { OneTimeStates } from '../../authorization-server/requests/one-time-states.js';
import { queryOf } from '../../http/input/query.js';
import { FORM_ID, newFormId } from '../rendering/pages.js';
import { fieldText } from '../requests/page-requests.js';
import type { Member, Sender } from './account-pages.js';

/** How long a form that was sent is known, and what it made can be shown, in seconds. */
const KNOWN_SECONDS = 600;

const MODEL = 'SentForm';
/** See {@link USE_ONCE}, whose row also keeps what the form made. */
const STORED_AS = 'ReplayDetection';

const KEEP = 'UPDATE oauth_state SET payload = $2 WHERE key = $1';

const FIND = `SELECT key, payload FROM oauth_state
WHERE key IN ($1, $2) AND model = '${STORED_AS}' AND expires_at > now() AND payload IS NOT NULL`;

const TAKE = `WITH kept AS (${FIND} FOR UPDATE
), taken AS (UPDATE oauth_state s SET payload = NULL FROM kept WHERE s.key = kept.key
) SELECT key, payload FROM kept`;

/**
 * Forms that make something: however often one is sent, twice at once or again after a reload, it makes it once. What was made is
 * then shown by the page to which the browser is redirected, also once: until then it is kept encrypted, under the form's id.
 */
@Injectable()
export class SentForms {
  constructor(
    private readonly dataSource: DataSource,
    private readonly states: OneTimeStates,
    private readonly keys: TokenKeys,
  ) {}

  /**
   * Runs `make`, in a transaction, unless the member sent this form before; one that is sent meanwhile waits for its end. If it throws,
   * the form counts as not sent.
   *
   * @returns what it made, now or before, unless that was shown since; and the form's id, which the
   * page that is to show it gets as its parameter `made`
   */
  async once<Made extends object>(
    { user, form }: Sender,
    make: (manager: EntityManager) => Promise<Made>,
  ): Promise<{ readonly made: Made | undefined; readonly formId: string }> {
    const sent = fieldText(form.form);
    const formId = FORM_ID.test(sent) ? sent : newFormId();
    const id = idOf(user.id, formId);
    const made = await this.dataSource.transaction(async (manager) => {
      const first = await manager.query<unknown[]>(USE_ONCE, [
        this.keys.everyKeyOf(MODEL, id),
        KNOWN_SECONDS,
      ]);
      if (first.length === 0) return undefined;
      const result = await make(manager);
      const { key, payload } = this.states.seal(MODEL, id, result);
      await manager.query(KEEP, [key, payload]);
      return result;
    });
    return { made: made ?? (await this.states.find<Made>(FIND, MODEL, id)), formId };
  }

  /** @returns what the form made that redirected the member here; undefined if that was shown before */
  async take<Made extends object>({ user, response }: Member): Promise<Made | undefined> {
    const made = queryOf(response.req).get('made');
    if (made === null || !FORM_ID.test(made)) return undefined;
    return this.states.find<Made>(TAKE, MODEL, idOf(user.id, made));
  }
}

/** Another member's form of the same id is another one. */
function idOf(userId: number, form: string): string {
  return `${userId}-${form}`;
}
