import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it, jest } from '@jest/globals';
import { Secrets } from '../crypto/secrets.js';
import type { Config } from '../config/config.js';
import { randomBytes } from '../crypto/random.js';
import { DeviceCookies } from './browser-cookies.js';

const HTTPS = 'https://api.example';
const [OLD, NEW] = [randomBytes(32), randomBytes(32)];
const cookies = (secrets = new Secrets(OLD), publicUrl = HTTPS) =>
  new DeviceCookies({ publicUrl, secrets } as Config);
const DEVICES = cookies();

function from(cookie: string): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.headers.cookie = cookie;
  return request;
}

/** @returns the complete Set-Cookie line */
function lineFor(userId: number, before = '', devices = DEVICES): string {
  const request = from(before);
  const response = new ServerResponse(request);
  devices.issue(request, response, userId);
  return String(response.getHeader('Set-Cookie'));
}

const cookieFor = (...args: Parameters<typeof lineFor>) => lineFor(...args).split(';')[0]!;

describe('the cookie of a known device', () => {
  it('is valid only for members for whom it was issued', () => {
    const cookie = cookieFor(7);
    expect(DEVICES.find(from(cookie), 7)).toMatch(/^[\w-]{22}$/);
    expect(DEVICES.find(from(`a=b; ${cookie}; c=d`), 7)).toBe(DEVICES.find(from(cookie), 7));
    for (const other of [1, 8, 70, 77]) expect(DEVICES.find(from(cookie), other)).toBeUndefined();
  });

  it('is HttpOnly, lasts 180 days, and on https is bound to this host', () => {
    expect(lineFor(7)).toMatch(
      /^__Host-pua_device=[\w-]{72}; Path=\/; Max-Age=15552000; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(lineFor(7, '', cookies(new Secrets(OLD), 'http://localhost:3000'))).toMatch(
      /^pua_device=[\w-]{72}; Path=\/; Max-Age=15552000; HttpOnly; SameSite=Lax$/,
    );
  });

  it('stores the last five members who share the browser', () => {
    let cookie = '';
    for (const userId of [1, 2, 3, 4, 5, 6]) cookie = cookieFor(userId, cookie);
    const [first, ...others] = [1, 2, 3, 4, 5, 6].map((id) => DEVICES.find(from(cookie), id));
    expect([first, others.includes(undefined), new Set(others).size]).toEqual([undefined, false, 5]);
    expect(cookieFor(6, cookie).length).toBe(cookie.length);
  });

  it('is rejected if it is altered, malformed or issued under another secret', () => {
    const [name, value] = cookieFor(7).split('=') as [string, string];
    const bytes = Buffer.from(value, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const altered = Buffer.from(bytes);
      altered[bit >> 3]! ^= 1 << (bit & 7);
      expect(DEVICES.find(from(`${name}=${altered.toString('base64url')}`), 7)).toBeUndefined();
    }
    for (const other of ['', '.', '....', value.slice(1), `${value}A`, 'x'.repeat(10_000), '%00', '{}'])
      expect(DEVICES.find(from(`${name}=${other}`), 7)).toBeUndefined();
    expect(DEVICES.find(from(cookieFor(7, '', cookies(new Secrets(NEW)))), 7)).toBeUndefined();
  });

  it('is rejected after 180 days, even if the browser keeps it', () => {
    const cookie = cookieFor(7);
    const now = jest.spyOn(Date, 'now');
    now.mockReturnValue(Date.now() + 179 * 86_400_000);
    expect(DEVICES.find(from(cookie), 7)).toBeDefined();
    now.mockReturnValue(Date.now() + 2 * 86_400_000);
    expect(DEVICES.find(from(cookie), 7)).toBeUndefined();
    now.mockRestore();
  });

  it('stays valid after a change of SECRET_KEY while SECRET_KEY_PREVIOUS is set', () => {
    const cookie = cookieFor(7);
    expect(cookies(new Secrets(NEW, OLD)).find(from(cookie), 7)).toBeDefined();
    expect(cookies(new Secrets(NEW)).find(from(cookie), 7)).toBeUndefined();
  });
});
