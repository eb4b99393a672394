/** Statements that are kept prepared; each takes some 50 KB. */
const MOST_KEPT = 300;
/** Texts remembered as seen once. */
const MOST_SEEN = 2_000;
/** After so many uses a statement is prepared again: its tables may have grown. */
const MOST_USES = 500;

/** Queries without parameters that change neither the meaning nor the best plan of prepared statements. */
const HARMLESS = /^\s*(BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SELECT|SHOW)\b/i;

const [PARSE, BIND, DESCRIBE, QUERY, CLOSE] = [...'PBDQC'].map((type) => type.charCodeAt(0));
const STATEMENT = 'S'.charCodeAt(0);
/** The whole message: type and length. */
const PARSE_COMPLETE = Uint8Array.of('1'.charCodeAt(0), 0, 0, 0, 4);
/** Type and length of a message. */
const HEAD = 5;

interface Kept {
  readonly name: string;
  uses: number;
}

/** How a client's message is handled. */
export interface Translated {
  /** What to send to PGlite; undefined if it need not be sent. */
  readonly bytes: Uint8Array | undefined;
  /** Response to the client in place of PGlite's. */
  readonly answer?: Uint8Array;
  /** To be called with each chunk of PGlite's response; chunks are whole messages. */
  readonly answered?: (data: Uint8Array) => void;
  /** Messages for PGlite after this one, whose responses are discarded. */
  readonly afterwards?: readonly Uint8Array[];
}

/**
 * Keeps recurring statements prepared in the embedded database's one session, whichever connection sends them: parsing and planning
 * takes several times as long as execution. Clients are unaware: they send the statement unnamed each time (PostgreSQL's protocol,
 * "Extended Query"), and its name is inserted here. A statement seen only once is passed on unchanged.
 *
 * After any query that could change the meaning or the best plan of a statement (DDL, ANALYZE, a load), all are prepared again.
 */
export class EmbeddedStatements {
  readonly #kept = new Map<string, Kept>();
  readonly #seen = new Set<string>();
  /** By connection: the name inserted for its unnamed statement. */
  readonly #unnamed = new Map<number, string>();
  #made = 0;

  /** @param message one whole message of the protocol */
  translate(connection: number, message: Uint8Array): Translated {
    const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
    switch (message[0]) {
      case PARSE:
        return this.#parse(connection, bytes);
      case BIND:
        return { bytes: this.#named(connection, bytes, bytes.indexOf(0, HEAD) + 1) };
      case DESCRIBE:
        return { bytes: bytes[HEAD] === STATEMENT ? this.#named(connection, bytes, HEAD + 1) : bytes };
      case QUERY:
        return isHarmless(bytes) ? { bytes } : { bytes, afterwards: this.#forget() };
      default:
        return { bytes };
    }
  }

  /** The connection is gone. */
  end(connection: number): void {
    this.#unnamed.delete(connection);
  }

  #parse(connection: number, bytes: Buffer): Translated {
    this.#unnamed.delete(connection);
    if (bytes[HEAD] !== 0) return { bytes }; // the client named it
    const statement = bytes.toString('latin1', HEAD + 1); // text and types of parameters
    const kept = this.#kept.get(statement);
    if (kept && ++kept.uses <= MOST_USES) {
      this.#unnamed.set(connection, kept.name);
      return { bytes: undefined, answer: PARSE_COMPLETE };
    }
    if (kept) this.#kept.delete(statement);
    else if (!this.#seen.delete(statement)) {
      if (this.#seen.size >= MOST_SEEN) this.#seen.clear();
      this.#seen.add(statement);
      return { bytes };
    }
    const name = `kept_${++this.#made}`;
    const forgotten = [
      ...(kept ? [closeOf(kept.name)] : []),
      ...(this.#kept.size >= MOST_KEPT ? this.#forget() : []),
    ];
    return {
      bytes: withName(bytes, HEAD, name),
      answered: (data) => {
        if (!isParsed(data)) return; // the client received the error
        this.#kept.set(statement, { name, uses: 1 });
        this.#unnamed.set(connection, name);
      },
      afterwards: forgotten,
    };
  }

  /** Inserts the statement's name if the message has an empty one. */
  #named(connection: number, bytes: Buffer, at: number): Buffer {
    const name = this.#unnamed.get(connection);
    return name === undefined || bytes[at] !== 0 ? bytes : withName(bytes, at, name);
  }

  #forget(): Uint8Array[] {
    const closes = [...this.#kept.values()].map(({ name }) => closeOf(name));
    this.#kept.clear();
    this.#unnamed.clear();
    return closes;
  }
}

/** The message with `name` inserted for the empty one at `at`. */
function withName(bytes: Buffer, at: number, name: string): Buffer {
  const named = Buffer.concat([bytes.subarray(0, at), Buffer.from(name), bytes.subarray(at)]);
  named.writeInt32BE(named.length - 1, 1);
  return named;
}

/** Whether the query is a single harmless statement: after a semicolon, any other could follow. */
function isHarmless(query: Buffer): boolean {
  const text = query.toString('latin1', HEAD, query.length - 1).trimEnd();
  const end = text.indexOf(';');
  return HARMLESS.test(text) && (end === -1 || end === text.length - 1);
}

/** Whether there is a ParseComplete among the messages: notices may come before it. */
function isParsed(data: Uint8Array): boolean {
  const messages = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at + HEAD <= messages.length; at += 1 + messages.readInt32BE(at + 1))
    if (messages[at] === PARSE_COMPLETE[0]) return true;
  return false;
}

function closeOf(name: string): Uint8Array {
  const message = Buffer.from(`C____S${name}\0`, 'latin1');
  message[0] = CLOSE!;
  message.writeInt32BE(message.length - 1, 1);
  return message;
}
