import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../../config/config.js';

/** A cookie of ours, which no script reads, and which no form of another site sends. */
export class BrowserCookie {
  readonly #name: string;
  readonly #attributes: string;

  /**
   * @param prefix for https, since browsers refuse such names on http. `__Host-`: no neighbouring host can set it
   * @param lifetimeSeconds without it, until the browser is closed
   */
  constructor(
    { publicUrl }: Config,
    name: string,
    prefix: '__Host-' | '__Secure-',
    private readonly lifetimeSeconds?: number,
  ) {
    const secure = publicUrl.startsWith('https:');
    this.#name = secure ? `${prefix}${name}` : name;
    this.#attributes = `HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  }

  /** The values that the browser sent, unchecked. There may be several: a sibling host can set one, too. */
  valuesIn(request: IncomingMessage): string[] {
    return (request.headers.cookie ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${this.#name}=`))
      .map((pair) => pair.slice(this.#name.length + 1));
  }

  set(response: ServerResponse, value: string, lifetimeSeconds = this.lifetimeSeconds): void {
    const lifetime = lifetimeSeconds === undefined ? '' : `Max-Age=${lifetimeSeconds}; `;
    response.appendHeader('Set-Cookie', `${this.#name}=${value}; Path=/; ${lifetime}${this.#attributes}`);
  }
}
