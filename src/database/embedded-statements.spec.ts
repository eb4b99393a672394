import { describe, expect, it } from '@jest/globals';
import { EmbeddedStatements } from './embedded-statements.js';

/** A message of the protocol: type, length, and parts that end with a zero. */
function message(type: string, ...texts: string[]): Buffer {
  const body = Buffer.from(texts.map((text) => `${text}\0`).join(''), 'latin1');
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const parse = (text: string, name = '') => message('P', name, `${text}\0`); // no types of parameters: two zeros
const bind = (statement = '') => message('B', '', statement, 'rest');
const describeOne = (statement = '') => message('D', `S${statement}`);
const query = (text: string) => message('Q', text);

const PARSED = Uint8Array.of(49, 0, 0, 0, 4);
const REFUSED = Uint8Array.of(69, 0, 0, 0, 4);

/** What PGlite receives when a connection sends and binds a statement. */
function send(statements: EmbeddedStatements, connection: number, text: string, answer = PARSED): Buffer[] {
  const { bytes, answer: known, answered, afterwards = [] } = statements.translate(connection, parse(text));
  answered?.(answer);
  expect(known ?? bytes).toEqual(known ? PARSED : expect.anything());
  const bound = statements.translate(connection, bind()).bytes;
  return [bytes, ...afterwards, bound].flatMap((one) => (one ? [Buffer.from(one)] : []));
}

describe('statements of the embedded database', () => {
  it('are sent as they are the first time, prepared the second, and not sent again, whichever connection asks', () => {
    const statements = new EmbeddedStatements();
    expect(send(statements, 1, 'SELECT $1')).toEqual([parse('SELECT $1'), bind()]);
    expect(send(statements, 2, 'SELECT $1')).toEqual([parse('SELECT $1', 'kept_1'), bind('kept_1')]);
    expect(send(statements, 1, 'SELECT $1')).toEqual([bind('kept_1')]);
    expect(statements.translate(1, describeOne()).bytes).toEqual(describeOne('kept_1'));
    expect(statements.translate(3, bind()).bytes).toEqual(bind()); // this connection has parsed nothing
  });

  it('are told apart by their text and the types of their parameters', () => {
    const statements = new EmbeddedStatements();
    const typed = Buffer.concat([message('P', '', 'SELECT $1'), Buffer.from([0, 1, 0, 0, 0, 20])]);
    typed.writeInt32BE(typed.length - 1, 1);
    for (let i = 0; i < 2; i++) send(statements, 1, 'SELECT $1');
    expect(statements.translate(1, typed).bytes).toEqual(typed);
    expect(send(statements, 1, 'SELECT $2')).toEqual([parse('SELECT $2'), bind()]);
  });

  it('are left alone that have a name, or are refused', () => {
    const statements = new EmbeddedStatements();
    for (let i = 0; i < 2; i++) send(statements, 1, 'SELECT $1');
    expect(statements.translate(1, parse('SELECT $1', 'own')).bytes).toEqual(parse('SELECT $1', 'own'));
    expect(statements.translate(1, bind('own')).bytes).toEqual(bind('own'));
    send(statements, 1, 'SELEKT $1');
    send(statements, 1, 'SELEKT $1', REFUSED);
    expect(send(statements, 1, 'SELEKT $1', REFUSED)[0]).toEqual(parse('SELEKT $1'));
  });

  it.each([
    'CREATE TABLE a ()',
    'ANALYZE',
    '  set search_path = a',
    'INSERT INTO a SELECT 1',
    '-- \nDROP TABLE a',
    'BEGIN; DROP TABLE a',
    'SELECT 1; DROP TABLE a',
  ])('are prepared anew after %s', (text) => {
    const statements = new EmbeddedStatements();
    for (let i = 0; i < 3; i++) send(statements, 1, 'SELECT $1');
    expect(statements.translate(2, query(text))).toEqual({
      bytes: query(text),
      afterwards: [message('C', 'Skept_1')],
    });
    expect(send(statements, 1, 'SELECT $1')[0]).toEqual(parse('SELECT $1'));
  });

  it.each(['BEGIN', 'START TRANSACTION', 'COMMIT', 'ROLLBACK', ' select 1', 'COMMIT;'])(
    'stay prepared over %s',
    (text) => {
      const statements = new EmbeddedStatements();
      for (let i = 0; i < 3; i++) send(statements, 1, 'SELECT $1');
      expect(statements.translate(1, query(text))).toEqual({ bytes: query(text) });
      expect(send(statements, 1, 'SELECT $1')).toEqual([bind('kept_1')]);
    },
  );

  it('are kept where PGlite has something to remark on them', () => {
    const statements = new EmbeddedStatements();
    const notice = Uint8Array.of(78, 0, 0, 0, 5, 0);
    send(statements, 1, 'SELECT $1');
    expect(send(statements, 1, 'SELECT $1', Uint8Array.of(...notice, ...PARSED)).at(-1)).toEqual(
      bind('kept_1'),
    );
  });

  it('are prepared anew after 500 uses, since what they read may have grown', () => {
    const statements = new EmbeddedStatements();
    for (let i = 0; i < 501; i++) send(statements, 1, 'SELECT $1');
    expect(send(statements, 1, 'SELECT $1')).toEqual([
      parse('SELECT $1', 'kept_2'),
      message('C', 'Skept_1'),
      bind('kept_2'),
    ]);
  });

  it('are kept up to 300', () => {
    const statements = new EmbeddedStatements();
    for (let n = 0; n < 300; n++) for (let i = 0; i < 2; i++) send(statements, 1, `SELECT $1 + ${n}`);
    send(statements, 1, 'SELECT $1');
    const told = send(statements, 1, 'SELECT $1');
    expect(told.filter((one) => one[0] === 'C'.charCodeAt(0))).toHaveLength(300);
    expect(send(statements, 1, 'SELECT $1')).toEqual([bind('kept_301')]);
  });
});
