import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { loadConfig } from '../config/config.js';
import { Csrf } from './browser-cookies.js';

const secret = (fill: string) => Buffer.alloc(32, fill).toString('base64');
const csrfWith = (settings: Record<string, string> = {}) =>
  new Csrf(
    loadConfig({
      NODE_ENV: 'test',
      SECRET_KEY: secret('a'),
      PUBLIC_URL: 'https://api.example',
      ...settings,
    }),
  );

function requestWith(headers: Record<string, string>): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return request;
}

/** A page with a form: its token and its cookie. */
function openPage(csrf: Csrf, headers: Record<string, string> = {}) {
  const request = requestWith(headers);
  const response = new ServerResponse(request);
  const token = csrf.token(request, response);
  const set = response.getHeader('set-cookie') as string | undefined;
  return { token, set, cookie: set?.split(';')[0] ?? headers.cookie!, response, request };
}

describe('Csrf', () => {
  const csrf = csrfWith();
  const { token, cookie } = openPage(csrf);
  const verify = (headers: Record<string, string>, submitted: unknown = token) =>
    csrf.verify(requestWith({ cookie, ...headers }), submitted);

  it('accepts a token together with its cookie', () => {
    expect(verify({})).toBe(true);
    expect(verify({ cookie: `theme=dark; ${cookie}; lang=en` })).toBe(true);
  });

  it('rejects a token without its cookie, a cookie without its token, and a pair from two browsers', () => {
    expect(verify({ cookie: '' })).toBe(false);
    for (const other of [null, '', [token], openPage(csrf).token]) expect(verify({}, other)).toBe(false);
  });

  it('rejects the cookie’s value as a token, and altered tokens', () => {
    expect(verify({}, cookie.split('=')[1])).toBe(false);
    const altered = token.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'));
    for (const other of [altered, `${token}AAAA`]) expect(verify({}, other)).toBe(false);
  });

  it('accepts this server’s Origin and the Origin null, and rejects other origins', () => {
    expect(verify({ origin: 'https://api.example' })).toBe(true);
    expect(verify({ origin: 'null' })).toBe(true);
    const [evil, http] = ['https://evil.example', 'http://api.example'];
    for (const origin of [evil, http, 'https://api.example:8443', 'https://api.example.evil.example'])
      expect(verify({ origin })).toBe(false);
  });

  it('rejects a request that the browser marks as cross-site or same-site, even with a null Origin', () => {
    expect(verify({ origin: 'null', 'sec-fetch-site': 'same-origin' })).toBe(true);
    expect(verify({ origin: 'null', 'sec-fetch-site': 'cross-site' })).toBe(false);
    expect(verify({ 'sec-fetch-site': 'same-site' })).toBe(false);
  });

  it('sets a cookie that is HttpOnly and SameSite=Lax, and on https is bound to this host', () => {
    expect(openPage(csrf).set).toMatch(
      /^__Host-pua_csrf=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(openPage(csrfWith({ PUBLIC_URL: 'http://localhost:3000' })).set).toMatch(
      /^pua_csrf=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/,
    );
  });

  it('keeps a browser’s existing id, and sets one id per response', () => {
    expect(openPage(csrf, { cookie })).toMatchObject({ token, set: undefined });
    const page = openPage(csrf);
    page.response.appendHeader('Set-Cookie', 'other=1');
    expect(csrf.token(page.request, page.response)).toBe(page.token);
    expect(page.response.getHeader('set-cookie')).toHaveLength(2);
  });

  it('accepts a token of the previous SECRET_KEY only while SECRET_KEY_PREVIOUS is set', () => {
    const after = csrfWith({ SECRET_KEY: secret('b'), SECRET_KEY_PREVIOUS: secret('a') });
    expect(after.verify(requestWith({ cookie }), token)).toBe(true);
    expect(csrfWith({ SECRET_KEY: secret('b') }).verify(requestWith({ cookie }), token)).toBe(false);
  });
});
