import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LocalServer {
  readonly url: string;
  close(this: void): Promise<void>;
}

/** Serves HTTP on a free local port. */
export async function serve(listener: RequestListener): Promise<LocalServer> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

type Reply = (request: IncomingMessage, response: ServerResponse) => void;

/** Sends a response. */
export const reply =
  (status: number, headers: Record<string, string> = {}, body = ''): Reply =>
  (_, response) =>
    response.writeHead(status, headers).end(body);

/** Ends the connection without a response. */
export const cutOff: Reply = ({ socket }) => socket.destroy();

/** Starts a server that gives each request the next of its `replies`, and keeps the headers of the requests. */
export async function serveReplies() {
  const seen: IncomingHttpHeaders[] = [];
  const { url, close } = await serve((request, response) => {
    seen.push(request.headers);
    scripted.replies.shift()!(request, response);
  });
  const scripted = { url, close, seen, replies: [] as Reply[] };
  return scripted;
}
