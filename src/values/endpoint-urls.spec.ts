import { describe, expect, it } from '@jest/globals';
import { findEndpointFault } from './endpoint-urls.js';

describe('a webhook URL', () => {
  const ON_THIS_HOST = [
    'https://localhost/',
    'https://hooks.localhost:8443/',
    'https://localhost./',
    'https://[::1]/',
  ];

  it.each(ON_THIS_HOST)('is rejected in production if it names this host: %s', (url) =>
    expect(findEndpointFault(url, true)).toBe('The URL must point to an address on the internet'),
  );

  it.each(['https://localhost.example/', 'https://notlocalhost/'])(
    'may resemble the name of this host: %s',
    (url) => expect(findEndpointFault(url, true)).toBeUndefined(),
  );

  it.each(['https://localhost/', 'http://localhost:3000/', 'http://127.0.0.1/'])(
    'may name this host outside production: %s',
    (url) => expect(findEndpointFault(url, false)).toBeUndefined(),
  );
});
