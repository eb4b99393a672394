import { describe, expect, it } from '@jest/globals';
import { errors } from 'oidc-provider';
import { Unavailable } from '../../database/postgres/unavailable.js';
import { pageFaultOf } from '../../authorization-server/failures/page-fault.js';
import { ENGLISH } from './wording.js';

/** The library's message, and its detail for developers. */
const [SAID, DETAIL] = ['redirect_uris must only contain widgets', 'unable to find the widget'];

const THROWN = Object.entries(errors).flatMap(([name, Fault]) => {
  if (name === 'CustomOIDCProviderError') return [];
  const make = Fault as unknown as new (description: string, detail: string) => errors.OIDCProviderError;
  return [[name, new make(SAID, DETAIL)] as const];
});

describe('the error text of a page', () => {
  it.each(THROWN)('has a code, and no technical words or library texts: %s', (_, error) => {
    expect(THROWN.length).toBeGreaterThan(20);
    for (const signingOut of [false, true]) {
      const page = pageFaultOf(error, signingOut).page('the-id');
      const [title, message] = ENGLISH.faults[page.fault];
      for (const theirs of [SAID, DETAIL, error.error_description, error.error_detail])
        if (theirs !== undefined) expect(`${title} ${message}`).not.toContain(theirs);
      expect(`${title} ${message}`).not.toMatch(/_|redirect|client|parameter|token|undefined/);
      expect([page.code, page.error_id]).toEqual([expect.stringMatching(/^[a-z_]+$/), 'the-id']);
    }
  });

  it('names an overload as busy, and hides the details of an internal error', () => {
    expect(pageFaultOf(new Unavailable('the pool is used up')).page('x')).toMatchObject({
      fault: 'busy',
      code: 'temporarily_unavailable',
    });
    expect(pageFaultOf(new Error('secret')).page('x')).toMatchObject({ code: 'server_error' });
    expect(JSON.stringify(pageFaultOf(new Error('secret')).page('x'))).not.toContain('secret');
  });
});
