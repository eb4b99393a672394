import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256 } from '../../crypto/digests.js';

/** Address of the embedded database for `pg`: the folder that contains its Unix socket, and a port. */
export interface EmbeddedAddress {
  readonly host: string;
  readonly port: number;
}

const PORT = 5432;
/** Linux allows 107 bytes for a socket's path, macOS 103. */
const MAX_SOCKET_PATH_LENGTH = 100;

/** Returns the address of the embedded database in `dataDir`; the database may be closed. */
export function embeddedAddress(dataDir: string): EmbeddedAddress {
  const fits = Buffer.byteLength(socketPath(dataDir)) <= MAX_SOCKET_PATH_LENGTH;
  const shorter = join(tmpdir(), `pua-${sha256(dataDir, 'hex').slice(0, 16)}`);
  return { host: fits ? dataDir : shorter, port: PORT };
}

/** Returns the path of the Unix socket that PostgreSQL's clients expect in the folder `host`. */
export function socketPath(host: string): string {
  return join(host, `.s.PGSQL.${PORT}`);
}
