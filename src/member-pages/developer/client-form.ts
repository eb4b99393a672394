import { ALL_SCOPES, isScope } from '../../auth/scopes.js';
import { asShown } from '../../values/string-rules.js';
import { allowedOriginsOf, parseKeySet } from '../../clients/client-rules.js';
import { PROFILE_NAMES, secretMethodOf } from '../../clients/profiles.js';
import type { ClientChanges, ClientDetails } from '../../clients/clients.service.js';
import { fieldText, type Form } from '../requests/page-requests.js';
import { clientLogoPath } from '../../authorization-server/ports.js';
import type { ClientForm, DeveloperClient } from '../rendering/page-contents.js';

/** Fields with one value per line. */
const LISTS = ['redirect_uris', 'allowed_origins', 'post_logout_redirect_uris'] as const;
const URLS = ['client_uri', 'policy_uri', 'backchannel_logout_uri'] as const;

const eachOf = <Field extends string, Value>(fields: readonly Field[], value: (field: Field) => Value) =>
  Object.fromEntries(fields.map((field) => [field, value(field)])) as Record<Field, Value>;

/** Returns the field values for editing an app, including changes that wait for an approval. */
export function fillForm({ pending_changes, ...live }: ClientDetails): ClientForm {
  const client = { ...live, ...pending_changes };
  const byDefault = allowedOriginsOf({ ...client, allowed_origins: [] }, client.token_endpoint_auth_method);
  const isDefault = byDefault.join() === client.allowed_origins.join();
  const lists = { ...client, ...(isDefault ? { allowed_origins: [] } : {}) };
  return {
    name: client.name,
    type: client.type,
    scopes: client.scopes,
    profile: client.profile,
    secret_auth_method: hasSecret(client) ? client.token_endpoint_auth_method : '',
    jwks: '',
    ...eachOf(LISTS, (field) => lists[field].join('\n')),
    ...eachOf(URLS, (field) => client[field] ?? ''),
  };
}

/** Reads the fields of a sent form, without surrounding white space and unknown scopes. */
export function readForm(form: Form): ClientForm {
  return {
    ...eachOf(['name', 'profile', 'secret_auth_method', 'jwks', ...LISTS, ...URLS], (field) =>
      fieldText(form[field]),
    ),
    type: form.type === 'native' ? 'native' : 'web',
    scopes: [form.scopes ?? []].flat().filter(isScope),
  };
}

export const EMPTY_FORM: ClientForm = { ...readForm({}), scopes: ALL_SCOPES, profile: 'oauth21' };

/** Converts the form to changes of an app. @param profiles that the developer can choose @throws ClientFault for invalid keys */
export function parseForm(values: ClientForm, profiles: readonly string[]) {
  const profile = PROFILE_NAMES.find((name) => name === values.profile && profiles.includes(name));
  return {
    name: asShown(values.name),
    ...eachOf(LISTS, (field) => splitLines(values[field])),
    ...eachOf(URLS, (field) => values[field] || null),
    scopes: ALL_SCOPES.filter((scope) => values.scopes.includes(scope)),
    jwks: values.jwks.trim() === '' ? null : parseKeySet(values.jwks),
    ...(profiles.length > 1 && profile
      ? { profile, secret_auth_method: secretMethodOf(values.secret_auth_method) }
      : {}),
  } satisfies ClientChanges;
}

/** Tells whether the app authenticates with a secret. */
export function hasSecret({
  token_endpoint_auth_method: method,
}: Pick<ClientDetails, 'token_endpoint_auth_method'>): boolean {
  return secretMethodOf(method) !== null;
}

/** Splits a text into trimmed lines, without blank or duplicate lines. */
export function splitLines(text: string): string[] {
  return [...new Set(text.split(/\r?\n/).flatMap((line) => line.trim() || []))];
}

/** Returns the details of an app that its developer's pages show. @param reviewed whether apps need a review */
export function shownClient(client: ClientDetails, reviewed: boolean): DeveloperClient {
  const byPlatform = client.disabled_at !== null && !client.disabled_by_owner;
  return {
    client_id: client.client_id,
    name: client.name,
    type: client.type,
    state: byPlatform ? 'disabledByPlatform' : client.disabled_at === null ? 'enabled' : 'disabled',
    ...(reviewed || client.review !== 'none' ? { review: client.review } : {}),
    // The server does not serve the logo of a disabled app.
    ...(client.has_logo && client.disabled_at === null ? { logo: clientLogoPath(client.client_id) } : {}),
  };
}
