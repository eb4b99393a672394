import { describe, expect, it } from '@jest/globals';
import { commented, commentOf, Requester, workFor } from './callers.js';

function inRequest<T>(id: string, work: () => T): T {
  const requester = new Requester();
  requester.comment = commentOf(id);
  return workFor(requester, work);
}

describe('the request id in SQL comments', () => {
  it('is appended to each statement of a request, and the statement is then not prepared', () => {
    const prepared = { name: 'one', text: 'SELECT $1', values: [1] };
    expect([commented('SELECT 1'), commented(prepared)]).toEqual(['SELECT 1', prepared]);
    expect(inRequest('a-1', () => [commented('SELECT 1'), commented(prepared)])).toEqual([
      "SELECT 1 /*request_id='a-1'*/",
      { name: undefined, text: "SELECT $1 /*request_id='a-1'*/", values: [1] },
    ]);
  });

  it.each(["'*/; DROP TABLE users; --", '*/', "'", '/*', '\\', '\n', 'ä“”𝄞', '%27%2a/'])(
    'never ends its comment early: %j',
    (id) => {
      expect(commentOf(id)).toMatch(/^ \/\*request_id='[A-Za-z0-9._~%-]*'\*\/$/);
    },
  );

  it('is the id of the statement’s own request among concurrent requests', async () => {
    const found = await Promise.all(
      ['a', 'b', 'c'].map((id) =>
        inRequest(id, async () => {
          await Promise.resolve();
          return commented('');
        }),
      ),
    );
    expect(found).toEqual(['a', 'b', 'c'].map(commentOf));
  });
});
