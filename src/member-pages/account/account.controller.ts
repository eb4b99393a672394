import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '../../auth/api-keys/api-keys.service.js';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { LimitReached } from '../../auth/owner.js';
import { Usage } from '../../auth/usage/usage.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { clientLogoPath, hostOf } from '../../authorization-server/ports.js';
import { REOPENABLE } from '../../authorization-server/provider/provider.js';
import { CalendarLinks, MAX_NAME_LENGTH, MAX_LINKS } from '../../calendar/calendar-links.js';
import { AppTesters } from '../../clients/app-testers.js';
import { readActivity } from '../../clients/activity.js';
import { ConnectedApps, type ConnectedApp } from '../../clients/connected-apps.js';
import { Config } from '../../config/config.js';
import { SignOuts } from '../../federation/sign-outs.js';
import { asShown, isName, isStorable } from '../../values/string-rules.js';
import type { PageOf } from '../rendering/page-contents.js';
import { Pages, redirect } from '../rendering/pages.js';
import { fieldText, FormBody, OwnForm, ServesPages, type Form } from '../requests/page-requests.js';
import { BrowserSessions } from '../sign-in/sign-in-steps.js';
import { AccountPages, FormSender, SentForms, Visitor, type Member, type Sender } from './account-pages.js';

type CalendarPage = PageOf<'calendar'>;
type MadeLink = NonNullable<CalendarPage['made']>;

const MAX_KEYS = 100;

/** Pages for the member's apps, sessions, activity, API keys, calendar links and language, below `/account`. */
@Controller('account')
@ServesPages()
export class AccountController {
  constructor(
    private readonly config: Config,
    private readonly dataSource: DataSource,
    private readonly account: AccountPages,
    private readonly pages: Pages,
    private readonly sessions: BrowserSessions,
    private readonly revocations: RevocationChannel,
    private readonly usage: Usage,
    private readonly signOuts: SignOuts,
    private readonly links: CalendarLinks,
    private readonly forms: SentForms,
    private readonly access: ConnectedApps,
    private readonly testers: AppTesters,
    private readonly keys: ApiKeysService,
  ) {}

  @Get()
  first(@Res() response: Response): void {
    redirect(response, '/account/apps');
  }

  @Get('apps')
  async apps(@Visitor('apps') visitor: Member): Promise<void> {
    await this.usage.flush(); // so that the page includes this process's latest counts
    const { shown, count } = await this.access.listApps(visitor.user.id);
    const ids = shown.map((app) => app.client_id);
    const choices = await this.access.findChoices(visitor.user.id, ids, this.config);
    const apps = shown.map((app) => ({
      ...app,
      durations: choices.get(app.client_id) ?? [],
      client: pageApp(app),
    }));
    const invitations = (await this.testers.ofMember(visitor.user.id)).map((invitation) => ({
      ...invitation,
      client: pageApp(invitation),
    }));
    visitor.send({ name: 'apps', apps, invitations, more: count - shown.length });
  }

  @Get('sessions')
  async allSessions(@Visitor('sessions') visitor: Member): Promise<void> {
    const userId = visitor.user.id;
    const { shown, count } = await this.access.listSessions(userId, visitor.sessionKeys);
    const apps = await this.access.listApps(userId);
    const links = await this.links.list(userId);
    visitor.send({
      name: 'sessions',
      sessions: shown.map((session) => ({ ...session, current: isOwn(visitor, session.id) })),
      more: count - shown.length,
      also: { apps: apps.count, links: links.length },
    });
  }

  @Get('activity')
  async activity(@Visitor('activity') visitor: Member): Promise<void> {
    await this.usage.flush();
    visitor.send({ name: 'activity', ...(await readActivity(this.dataSource, visitor.user.id)) });
  }

  @Get('keys')
  async allKeys(@Visitor('keys') visitor: Member): Promise<void> {
    await this.usage.flush();
    const accepted = (await this.keys.list({ userId: visitor.user.id })).filter(
      ({ status }) => status === 'active' || status === 'replaced',
    );
    const keys = accepted.slice(0, MAX_KEYS);
    visitor.send({ name: 'keys', keys, more: accepted.length - keys.length });
  }

  @Post('keys/:key/revoke')
  async revokeKey(@FormSender() member: Sender, @Param('key') id: string): Promise<void> {
    const revoked = await this.keys.revokeOf(member.user.id, id, 'revoked by the member', member.by);
    this.revocations.announce({ kind: 'key', id });
    member.redirect('/account/keys', revoked ? 'key-revoked' : undefined);
  }

  /** Reads the app's id from a form field, since an id that an admin chose may contain characters that a page's path must not contain. */
  @Post('apps/revoke')
  async revoke(@FormSender() member: Sender): Promise<void> {
    await this.access.revoke(member.user.id, clientIdOf(member), member.by);
    this.revocations.announce({ kind: 'user', id: String(member.user.id) });
    member.redirect('/account/apps', 'access-revoked');
  }

  @Post('apps/accept')
  async acceptInvitation(@FormSender() member: Sender): Promise<void> {
    const accepted = await this.testers.accept(member.user.id, clientIdOf(member), member.by);
    member.redirect('/account/apps', accepted ? 'invitation-accepted' : undefined);
  }

  @Post('apps/leave')
  async leaveTest(@FormSender() member: Sender): Promise<void> {
    const left = await this.testers.leave(member.user.id, clientIdOf(member), member.by);
    this.revocations.announce({ kind: 'user', id: String(member.user.id) });
    member.redirect('/account/apps', left ? 'invitation-left' : undefined);
  }

  @Post('apps/change')
  async changeEnd(@FormSender() member: Sender): Promise<void> {
    const clientId = clientIdOf(member);
    const choices = await this.access.findChoices(member.user.id, [clientId], this.config);
    const durations = choices.get(clientId);
    const duration = durations?.find((one) => one === member.form.duration);
    if (durations && !duration) throw new PageFault(400, 'malformed');
    const changed = duration && (await this.access.changeEnd(member.user.id, clientId, duration, member.by));
    member.redirect('/account/apps', changed ? 'access-changed' : undefined);
  }

  @Post('sessions/:session/end')
  async endSession(@FormSender() member: Sender, @Param('session') sessionId: string): Promise<void> {
    const ended = await this.access.endSession(member.user.id, sessionId, member.by);
    member.redirect('/account/sessions', ended && !isOwn(member, sessionId) ? 'session-ended' : undefined);
  }

  @Post('sessions/end-others')
  async endOtherSessions(@FormSender() member: Sender): Promise<void> {
    const { user, sessionKeys, by, form } = member;
    const also = [form.also ?? []].flat();
    const [apps, links] = [also.includes('apps'), also.includes('links')];
    await this.dataSource.transaction(async (manager) => {
      await this.access.endOtherSessions(user.id, by, sessionKeys, manager);
      if (apps) await this.access.revoke(user.id, null, by, manager);
      if (links) await this.links.revokeAll(user.id, by, manager);
    });
    if (apps) this.revocations.announce({ kind: 'user', id: String(user.id) });
    member.redirect('/account/sessions', also.length > 0 ? 'others-and-access-ended' : 'others-ended');
  }

  @Get('calendar')
  async calendar(@Visitor('calendar') visitor: Member): Promise<void> {
    await this.usage.flush();
    await this.#showCalendar(visitor, { made: await this.forms.take<MadeLink>(visitor) });
  }

  /** Creates a calendar link; the next page shows it once. Neither the redirect's URL nor a cookie contains the link. */
  @Post('calendar/create')
  async createLink(@FormSender('calendar') member: Sender): Promise<void> {
    const name = asShown(fieldText(member.form.name));
    if (!isName(name, MAX_NAME_LENGTH)) {
      await this.#showCalendar(member, { fault: 'name' }, 422);
      return;
    }
    try {
      const { formId } = await this.forms.once<MadeLink>(member, async (manager) => ({
        name,
        url: await this.links.create(member.user.id, name, member.by, manager),
      }));
      member.redirect(`/account/calendar?made=${formId}`);
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      await this.#showCalendar(member, { fault: 'limit' }, 422);
    }
  }

  @Post('calendar/:link/revoke')
  async revokeLink(@FormSender() member: Sender, @Param('link') link: string): Promise<void> {
    if (!/^[1-9]\d{0,14}$/.test(link)) throw new PageFault(400, 'malformed');
    const ended = await this.links.revoke(member.user.id, Number(link), member.by);
    member.redirect('/account/calendar', ended ? 'calendar-link-revoked' : undefined);
  }

  async #showCalendar(member: Member, said: Pick<CalendarPage, 'fault' | 'made'>, status = 200) {
    const page = {
      name: 'calendar',
      confirm: await member.confirmationOn('calendar'),
      longest: MAX_NAME_LENGTH,
      most: MAX_LINKS,
      links: await this.links.list(member.user.id),
      ...said,
    } as const;
    member.send(page, status);
  }

  @Post('sign-out')
  async signOut(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    const member = await this.account.sentBy(response, form);
    const onwards = await this.signOuts.addressFor(undefined, member === undefined);
    if (member) {
      const event = { type: 'session.signed_out', actor: 'user', userId: member.user.id } as const;
      await this.sessions.signOut(response, event);
    }
    if (onwards === undefined) redirect(response, '/sign-in/signed-out');
    else this.pages.leaveFor(response, onwards);
  }

  /** Stores a language chosen on a page of an app's request. The page has a form, since a link's URL would contain the request. */
  @Post('language')
  chooseLanguage(@Res() response: Response, @OwnForm() form: Form): void {
    const { publicUrl } = this.config;
    const to = URL.parse(fieldText(form.to), publicUrl);
    if (to?.origin !== new URL(publicUrl).origin || !REOPENABLE.includes(to.pathname))
      throw new PageFault(400, 'malformed');
    if (!this.pages.rememberLanguage(fieldText(form.language), response))
      throw new PageFault(400, 'malformed');
    this.pages.leaveFor(response, to.pathname + to.search);
  }
}

function pageApp(
  app: Pick<ConnectedApp, 'client_id' | 'client_name' | 'redirect_uri' | 'has_logo'> & {
    has_document?: boolean;
  },
) {
  return {
    name: app.client_name,
    host: hostOf(app.has_document ? app.client_id : app.redirect_uri),
    ...(app.has_logo ? { logo: clientLogoPath(app.client_id) } : {}),
  };
}

function clientIdOf({ form: { client_id: clientId } }: Sender): string {
  if (typeof clientId !== 'string' || clientId.length > 100 || !isStorable(clientId))
    throw new PageFault(400, 'malformed');
  return clientId;
}

function isOwn({ sessionKeys }: Member, sessionId: string): boolean {
  return sessionKeys.some((key) => key.toString('hex') === sessionId);
}
