// Bare oidc-provider over PostgreSQL, written from the library's documentation: one table, payloads as JSON,
// plain ids, each step its own statement. The library's development pages replace sign-in and consent.
import Provider from 'oidc-provider';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { DATABASE_URL, POOL_SIZE, PORT } from './shared.mjs';
import { CLIENT_ID, REDIRECT_URI, SCOPE } from '../oauth-client.mjs';

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: POOL_SIZE });
await pool.query(`DROP TABLE IF EXISTS naive_oidc; CREATE TABLE naive_oidc (
  model text NOT NULL, id text NOT NULL, payload jsonb NOT NULL, uid text, grant_id text,
  expires_at timestamptz NOT NULL, consumed_at timestamptz, PRIMARY KEY (model, id));
CREATE INDEX ON naive_oidc (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX ON naive_oidc (uid) WHERE uid IS NOT NULL`);

const query = (name, text, values) => pool.query({ name, text, values });
const payloadOf = ({ rows: [row] }) =>
  row && { ...row.payload, ...(row.consumed ? { consumed: row.consumed } : {}) };

class NaiveAdapter {
  constructor(model) {
    this.model = model;
  }

  async upsert(id, payload, expiresIn) {
    await query(
      'upsert',
      `INSERT INTO naive_oidc (model, id, payload, uid, grant_id, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
       ON CONFLICT (model, id) DO UPDATE SET payload = EXCLUDED.payload, uid = EXCLUDED.uid,
         grant_id = EXCLUDED.grant_id, expires_at = EXCLUDED.expires_at`,
      [this.model, id, payload, payload.uid, payload.grantId, expiresIn ?? 31_536_000],
    );
  }

  async find(id) {
    const text = `SELECT payload, extract(epoch FROM consumed_at)::int AS consumed FROM naive_oidc
      WHERE model = $1 AND id = $2 AND expires_at > now()`;
    return payloadOf(await query('find', text, [this.model, id]));
  }

  async findByUid(uid) {
    const text = `SELECT payload, NULL AS consumed FROM naive_oidc
      WHERE model = $1 AND uid = $2 AND expires_at > now()`;
    return payloadOf(await query('find-by-uid', text, [this.model, uid]));
  }

  async consume(id) {
    const text = 'UPDATE naive_oidc SET consumed_at = now() WHERE model = $1 AND id = $2';
    await query('consume', text, [this.model, id]);
  }

  async destroy(id) {
    await query('destroy', 'DELETE FROM naive_oidc WHERE model = $1 AND id = $2', [this.model, id]);
  }

  async revokeByGrantId(grantId) {
    await query('revoke', 'DELETE FROM naive_oidc WHERE grant_id = $1', [grantId]);
  }
}

const issuer = `http://127.0.0.1:${PORT}`;
const resource = `${issuer}/api/public`;
const signingKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });

const provider = new Provider(issuer, {
  adapter: NaiveAdapter,
  clients: [
    {
      client_id: CLIENT_ID,
      redirect_uris: [REDIRECT_URI],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      id_token_signed_response_alg: 'ES256',
    },
  ],
  jwks: { keys: [{ ...signingKey, alg: 'ES256', use: 'sig' }] },
  cookies: { keys: [randomBytes(32).toString('base64url')] },
  routes: { authorization: '/oauth/authorize', token: '/oauth/token' },
  responseTypes: ['code'],
  clientAuthMethods: ['none'],
  async findAccount(_ctx, sub) {
    const { rowCount } = await query('account', 'SELECT FROM users WHERE id = $1 AND disabled_at IS NULL', [
      sub,
    ]);
    return rowCount === 1 ? { accountId: sub, claims: () => ({ sub }) } : undefined;
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: () => true,
  expiresWithSession: () => false,
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: SCOPE.replace('openid ', ''),
        audience: resource,
        accessTokenTTL: 600,
        accessTokenFormat: 'opaque',
      }),
    },
  },
  ttl: {
    AccessToken: 600,
    AuthorizationCode: 60,
    RefreshToken: 1_209_600,
    Grant: 1_209_600,
    Session: 86_400,
  },
});
provider.listen(Number(PORT), '127.0.0.1');
