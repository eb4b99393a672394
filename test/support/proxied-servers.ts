import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { freePort, OauthTest } from './oauth.js';
import { Proxy, type PROXIES } from './proxies.js';
import { ServerProcess } from './server.js';
import { until } from './timing.js';

interface Options {
  /** Number of spare servers: they have settings, but are not started. */
  readonly spare?: number;
  /** Additional settings of every server. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly keepaliveSeconds?: number;
}

/** Two server processes over one database, behind a real proxy, whose certificate is trusted until {@link ProxiedServers.close}. */
export class ProxiedServers {
  /** The running servers; a test may change the list, and `close` stops all servers in it. */
  readonly servers: ServerProcess[] = [];
  readonly #trusted = getCACertificates('default');
  #proxy: Proxy | undefined;

  private constructor(
    readonly oauth: OauthTest,
    /** The environment of each server, spare servers last; each has a METRICS_PORT. */
    readonly settings: readonly Readonly<Record<string, string>>[],
  ) {}

  static async start(
    name: keyof typeof PROXIES,
    { spare = 0, environment = {}, keepaliveSeconds }: Options = {},
  ): Promise<ProxiedServers> {
    const port = await freePort();
    const oauth = await OauthTest.start({ publicUrl: `https://localhost:${port}` });
    const settings = [];
    for (let n = 0; n < 2 + spare; n++)
      settings.push({
        ...oauth.api.environment,
        PORT: String(await freePort()),
        METRICS_PORT: String(await freePort()),
        PUBLIC_URL: oauth.issuer,
        TRUST_PROXY: '1',
        RATE_LIMIT_READ: '0',
        RATE_LIMIT_WRITE: '0',
        RATE_LIMIT_AUTH: '0',
        RATE_LIMIT_PLATFORM: '0',
        ...environment,
      });
    const started = new ProxiedServers(oauth, settings);
    try {
      await started.#open(name, port, keepaliveSeconds);
    } catch (error) {
      await started.close();
      throw error;
    }
    return started;
  }

  async #open(name: keyof typeof PROXIES, port: number, keepaliveSeconds?: number): Promise<void> {
    const first = this.settings.slice(0, 2);
    this.servers.push(...(await Promise.all(first.map((each) => ServerProcess.start(each)))));
    const ports = first.map(({ PORT }) => Number(PORT));
    this.#proxy = await Proxy.start(name, port, ports, keepaliveSeconds);
    setDefaultCACertificates([...this.#trusted, this.#proxy.certificate]);
  }

  /**
   * Waits until the proxy sends GET /api/public/profile to a restarted server. On a busy host the proxy may avoid the server for longer
   * than SHUTDOWN_DELAY, and would have no server when the next one stops.
   */
  untilUsed(i: number): Promise<void> {
    const { METRICS_PORT } = this.settings[i]!;
    return until(async () => {
      const metrics = await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`);
      return /^http_request_duration_seconds_count\{.*route="\/api\/public\/profile"/m.test(
        await metrics.text(),
      );
    }, `the proxy uses server ${i}`);
  }

  get proxy(): Proxy {
    return this.#proxy!;
  }

  async close(): Promise<void> {
    setDefaultCACertificates(this.#trusted);
    await this.#proxy?.stop();
    await Promise.all(this.servers.map((server) => server.kill('SIGKILL')));
    await this.oauth.close();
  }
}
