import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';

/**
 * Whether requests may be sent here. Once the end is near `/readyz` says so to whoever distributes requests, and every answer
 * to whoever asked: `Connection: close` (RFC 9112 §9.6), since a request written to a connection that is closed that moment
 * is lost.
 */
@Injectable()
export class Readiness {
  #ending = false;
  readonly #connections = new Set<Socket>();
  readonly #underWay = new Set<ServerResponse>();

  /** Whether the process was told to end. */
  get ending(): boolean {
    return this.#ending;
  }

  /** Watches every connection and every answer of `server`, whoever makes it. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    server.prependListener('request', (_request, response) => {
      if (this.#ending) {
        response.shouldKeepAlive = false;
        return;
      }
      this.#underWay.add(response);
      response.once('close', () => this.#underWay.delete(response));
    });
  }

  /** The answers under way are the last ones on their connections, too. */
  end(): void {
    this.#ending = true;
    for (const response of this.#underWay) response.shouldKeepAlive = false;
    this.#underWay.clear();
  }

  /** Closes connections on which nothing was ever asked: browsers open some in advance. */
  closeSilent(): void {
    for (const socket of this.#connections) if (socket.bytesRead === 0) socket.destroy();
  }
}
