import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Sends raw bytes on a new connection. */
export class Client {
  text = '';

  private constructor(readonly socket: Socket) {
    socket.on('error', () => undefined);
    socket.setEncoding('latin1').on('data', (text: string) => (this.text += text));
  }

  static async open(url: string): Promise<Client> {
    const { port, hostname } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new Client(socket);
  }

  /** Everything received until the server closes the connection. */
  static async ask(url: string, bytes: string): Promise<string> {
    const client = await Client.open(url);
    client.socket.write(bytes, 'latin1');
    await once(client.socket, 'close');
    return client.text;
  }

  async until(enough: (text: string) => boolean): Promise<string> {
    while (!enough(this.text)) {
      if (this.socket.closed) throw new Error(`closed after ${JSON.stringify(this.text)}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return this.text;
  }
}
