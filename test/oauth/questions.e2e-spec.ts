import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { loadConfig } from '../../src/config/config.js';
import { pathPattern, RouteTable } from '../../src/http/route-table.js';
import { Layout } from '../../src/layout/layout.js';
import { PlatformLogo } from '../../src/member-pages/rendering/logos.controller.js';
import { Pages } from '../../src/member-pages/rendering/pages.js';
import { QUESTIONS } from '../../src/member-pages/rendering/questions.js';
import { OauthTest } from '../support/oauth.js';
import { SAMPLES } from '../support/page-samples.js';

/** Every other form of members and developers, and how what it does is taken back. */
const UNDOABLE: Readonly<Record<string, string>> = {
  '/interaction/:uid/sign-in': 'sign out',
  '/interaction/:uid/passkey': 'sign out',
  '/interaction/:uid/passkey/options': 'changes nothing',
  '/interaction/:uid/consent': 'revoke the access at /account/apps; ask again',
  '/interaction/:uid/cancel': 'sign in again',
  '/interaction/:uid/switch-user': 'sign in again',
  '/account/sign-out': 'sign in again',
  '/account/apps/change': 'change it again',
  '/account/apps/accept': 'leave the test',
  '/developer/review/:client': 'change the app, which ends the application',
  '/developer/review/:client/testers': 'remove the tester',
  '/developer/webhooks/:app': 'delete the webhook',
  '/developer/webhooks/:app/:webhook/test': 'sends a message without data',
  '/account/language': 'choose another',
  '/account/calendar/create': 'revoke the link',
  '/account/data/download': 'changes nothing',
  '/account/security/passkeys': 'remove the passkey',
  '/account/security/passkeys/options': 'changes nothing',
  '/account/security/password': 'change it again; the form has the old password typed',
  '/account/security/password/on': 'switch it off',
  '/account/security/notices': 'choose again',
  '/account/unsubscribe/:token': 'choose again on /account/security',
  '/account/password-reset/send': 'changes nothing',
  '/account/new-password/:token/set': 'change it again; comes of a link in a mail, and says first what ends',
  '/developer/clients': 'delete the app',
  '/developer/clients/:client': 'change it again',
  '/developer/clients/:client/enable': 'disable it',
  '/developer/clients/:client/logo': 'remove or replace it',
  '/developer/keys': 'revoke the key',
  '/developer/redirect-uris': 'changes nothing',
};

/** The sign-ins on pages themselves. */
const SIGN_IN = /^\/(account\/\w+|developer|developer\/new-key)\/(sign-in|passkey|passkey\/options)$/;

let oauth: OauthTest;
beforeAll(async () => {
  const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'a@b.example' };
  oauth = await OauthTest.start({ developerConsole: true, mail });
});
afterAll(() => oauth.close());

const pagesOf = () => {
  const config = loadConfig({ NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY });
  return new Pages(config, new PlatformLogo(config), new Layout(config));
};

describe('an irreversible action', () => {
  it('has a confirmation form, or is listed as undoable', () => {
    const forms = oauth.api.app
      .get(RouteTable)
      .routes.filter(
        ({ method, path }) => method === 'POST' && /^\/(interaction|account|developer)\b/.test(path),
      )
      .map(({ path }) => path)
      .filter((path) => !SIGN_IN.test(path));
    expect(forms.toSorted()).toEqual([...Object.keys(QUESTIONS), ...Object.keys(UNDOABLE)].toSorted());
  });

  it.each(Object.keys(QUESTIONS))('%s: is sent only by the button below its question', (route) => {
    const pages = pagesOf();
    const sent = new RegExp(` action="${pathPattern(route).source.slice(1, -1)}"`);
    const html = Object.values(SAMPLES).map((sample) => pages.render(sample, 'en').html);
    expect(html.filter((page) => sent.test(page)).length).toBeGreaterThan(0);
    const unasked = html.map((page) => page.replaceAll(/<details class="ask"[^]*?<\/details>/g, ''));
    expect(unasked.filter((page) => sent.test(page))).toEqual([]);
  });

  it('has a distinct question in every language', () => {
    const pages = pagesOf();
    const asked = pages.languages.flatMap((language) =>
      Object.values(SAMPLES).flatMap((sample) => {
        const { html } = pages.render(sample, language);
        return [...html.matchAll(/<details class="ask"[^]*?<p>([^<]+)<\/p>/g)].map(([, text]) => text!);
      }),
    );
    expect(new Set(asked).size).toBe(pages.languages.length * new Set(Object.values(QUESTIONS)).size);
  });
});
