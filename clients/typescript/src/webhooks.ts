/** A webhook message: a record to read again or delete, or a change of the app's access (the server's docs/developers/webhooks.md). */
export interface WebhookMessage {
  /** Such as `events.updated` or `access.ended`; `webhook.test` for an admin's test message, whose `data` is empty. */
  readonly type: string;
  /** When the change happened, as in `2026-05-01T18:00:00.123Z`. */
  readonly timestamp: string;
  readonly data: {
    /** null in a message to the platform about a record without a member. */
    readonly member_id?: number | null;
    readonly resource?: string;
    readonly id?: number;
    readonly kind?: 'updated' | 'removed';
    /** For `access.…` and `credential.…`: the scopes of the app or key. */
    readonly scopes?: readonly string[];
    /** For the same types: the end of access, such as `2026-05-01 18:00:00` (UTC); null if there is none. */
    readonly access_ends_at?: string | null;
    /** For the same types: why access ended; null if it has not ended. */
    readonly reason?: 'member' | 'app' | 'platform' | 'expired' | 'unused' | null;
  };
}

/** Headers of `fetch`, or of Node with names in lower case. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A forged or old message: respond with 401. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
}

/**
 * Reads a webhook of the API after checking its signature and age (Standard Webhooks).
 *
 * @param secrets `whsec_…`, as shown at the endpoint's registration; both during a rotation
 * @param body the unchanged bytes of the request
 * @param toleranceSeconds maximum age of a message
 * @throws WebhookError
 */
export async function verifyWebhook(
  secrets: string | readonly string[],
  headers: WebhookHeaders,
  body: string | Uint8Array,
  toleranceSeconds = 300,
): Promise<WebhookMessage> {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    valueOf(headers, `webhook-${name}`),
  );
  if (!id || !timestamp || !signatures) throw new WebhookError('The headers of a webhook are missing.');
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= toleranceSeconds))
    throw new WebhookError('The message is too old, or a clock is wrong.');
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  for (const secret of [secrets].flat()) {
    const hmac = { name: 'HMAC', hash: 'SHA-256' };
    const key = await crypto.subtle.importKey('raw', bytesOf(secret.replace(/^whsec_/, '')), hmac, false, [
      'verify',
    ]);
    for (const signature of signatures.split(' ')) {
      const [version, code = ''] = signature.split(',');
      // WebCrypto compares in constant time.
      if (version === 'v1' && (await crypto.subtle.verify(hmac, key, bytesOf(code), signed)))
        return JSON.parse(text) as WebhookMessage;
    }
  }
  throw new WebhookError('No signature of the message is genuine.');
}

function valueOf(headers: WebhookHeaders, name: string): string | undefined {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Decodes base64. Returns no bytes for other text: then no signature matches. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
