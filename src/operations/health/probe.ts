import { USER_AGENT } from '../../config/version.js';

const MAX_MS = 5_000;

interface Probed {
  readonly ready: boolean;
  /** Response time of the readiness check, in ms. */
  readonly milliseconds: number;
  readonly version: string | null;
  /** Why the server is not ready, as a predicate such as `does not respond in 5 s`; null if it is ready. */
  readonly problem: string | null;
}

/** Requests the readiness and version of the server at this URL. */
export async function probe(address: string): Promise<Probed> {
  const startedAt = performance.now();
  const ask = (path: string) =>
    fetch(`${address}${path}`, {
      headers: { 'User-Agent': USER_AGENT },
      signal: AbortSignal.timeout(MAX_MS),
      redirect: 'manual',
    });
  try {
    const response = await ask('/readyz');
    const { status, detail } = (await response.json().catch(() => ({}))) as {
      status?: unknown;
      detail?: string;
    };
    const milliseconds = Math.round(performance.now() - startedAt);
    const ready = response.status === 200 && status === 'ok';
    const isOurs = ready || response.headers.get('Content-Type')?.startsWith('application/problem+json');
    const problem = isOurs
      ? `is not ready: ${detail ?? `it responded with ${response.status}`}`
      : `responds with ${response.status}, and is not this server`;
    const version = isOurs
      ? await readVersion(await ask('/api/public/openapi.json')).catch(() => null)
      : null;
    return { ready, milliseconds, version, problem: ready ? null : problem };
  } catch (error) {
    const { name, cause } = error as Error & { cause?: { code?: string } };
    const reason = name === 'TimeoutError' ? `in ${MAX_MS / 1000} s` : `(${cause?.code ?? name})`;
    const milliseconds = Math.round(performance.now() - startedAt);
    return { ready: false, milliseconds, version: null, problem: `does not respond ${reason}` };
  }
}

async function readVersion(response: Response): Promise<string | null> {
  const { info } = (await response.json()) as { info?: { version?: string } };
  return info?.version ?? null;
}
