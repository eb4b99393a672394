import { Controller, Get, Param, Post } from '@nestjs/common';
import { LimitReached } from '../../auth/owner.js';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { ALL_SCOPES } from '../../auth/scopes.js';
import { AppTesters, MAX_TESTERS } from '../../clients/app-testers.js';
import { ClientsService, type ClientDetails } from '../../clients/clients.service.js';
import { ClientReviews, applicationFault, MAX_PURPOSE, MAX_REASON } from '../../clients/reviews.js';
import { Config } from '../../config/config.js';
import { asShown, isUsername } from '../../values/string-rules.js';
import { OperatorError } from '../../values/operator-error.js';
import { FormSender, SentForms, Visitor, type Member, type Sender } from '../account/account-pages.js';
import type { PageOf } from '../rendering/page-contents.js';
import { fieldText, ServesPages } from '../requests/page-requests.js';
import { shownClient } from './client-form.js';

type Page = PageOf<'developer-review'>;

/** Pages for the review and the testers of the member's own apps. They exist only if DEVELOPER_CONSOLE is on. */
@Controller('developer/review')
@ServesPages()
export class DeveloperReviewController {
  constructor(
    private readonly config: Config,
    private readonly forms: SentForms,
    private readonly clients: ClientsService,
    private readonly reviews: ClientReviews,
    private readonly testers: AppTesters,
    private readonly revocations: RevocationChannel,
  ) {}

  @Get(':client')
  async show(@Visitor('developer') developer: Member, @Param('client') id: string): Promise<void> {
    await this.#show(developer, await this.clients.find(id, developer.owner));
  }

  @Post(':client')
  async apply(@FormSender('developer') developer: Sender, @Param('client') id: string): Promise<void> {
    const { form, owner } = developer;
    const client = await this.clients.find(id, owner);
    const scopes = wantedScopes(client);
    const values = {
      purpose: asShown(fieldText(form.purpose)),
      policy_uri: fieldText(form.policy_uri),
      reasons: Object.fromEntries(
        scopes.map((scope) => [scope, asShown(fieldText(form[`reason-${scope}`]))]),
      ),
    };
    const fault = applicationFault(values, scopes);
    if (fault) return this.#show(developer, client, { values, fault }, 400);
    try {
      await this.forms.once(developer, async (manager) => {
        await this.reviews.apply(id, values, owner, manager);
        return {};
      });
      developer.redirect(pathOf(id), 'review-applied');
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      developer.redirect(pathOf(id), 'review-not-applied');
    }
  }

  @Post(':client/testers')
  async invite(@FormSender() developer: Sender, @Param('client') id: string): Promise<void> {
    const username = asShown(fieldText(developer.form.username)).normalize('NFKC');
    const client = await this.clients.find(id, developer.owner);
    if (!isUsername(username)) return this.#show(developer, client, { fault: 'username' }, 400);
    try {
      await this.testers.invite(id, username, developer.owner);
      developer.redirect(pathOf(id), 'tester-invited');
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      await this.#show(developer, client, { fault: 'full' }, 409);
    }
  }

  @Post(':client/testers/remove')
  async remove(@FormSender() developer: Sender, @Param('client') id: string): Promise<void> {
    const userId = await this.testers.remove(id, fieldText(developer.form.username), developer.owner);
    if (userId !== null) this.revocations.announce({ kind: 'user', id: String(userId) });
    developer.redirect(pathOf(id), 'tester-removed');
  }

  async #show(
    developer: Member,
    client: ClientDetails,
    { values, fault }: Partial<Pick<Page, 'values' | 'fault'>> = {},
    status = 200,
  ): Promise<void> {
    const { review, applied_at, approved_at, rejection, application, pending_changes, policy_uri } = client;
    const changes = Object.keys(pending_changes ?? {}).map((column) =>
      column === 'has_logo' ? 'logo' : column,
    ) as Page['changes'];
    const shown = shownClient(client, true);
    const isClosed = this.config.reviewsApps && approved_at === null;
    developer.send(
      {
        name: 'developer-review',
        client: shown,
        review,
        applied_at,
        approved_at,
        rejection,
        changes,
        canApply:
          shown.state !== 'disabledByPlatform' &&
          review !== 'pending' &&
          (approved_at === null || changes.length > 0),
        scopes: wantedScopes(client),
        values: values ?? {
          purpose: application?.purpose ?? '',
          policy_uri: policy_uri ?? '',
          reasons: application?.reasons ?? {},
        },
        longest: { purpose: MAX_PURPOSE, reason: MAX_REASON },
        testers: isClosed ? await this.testers.list(client.client_id) : null,
        most: MAX_TESTERS,
        fault,
      },
      status,
    );
  }
}

const pathOf = (client: string) => `/developer/review/${client}`;

const wantedScopes = ({ scopes, pending_changes }: ClientDetails) => {
  const wanted = pending_changes?.scopes ?? scopes;
  return ALL_SCOPES.filter((scope) => wanted.includes(scope));
};
