import { ALL_SCOPES, isScope } from '../../auth/scopes.js';
import { asShown } from '../../values/string-rules.js';
import { allowedOriginsOf, keySetOf } from '../../clients/client-rules.js';
import { PROFILE_NAMES, secretMethodOf } from '../../clients/profiles.js';
import type { ClientChanges, ClientDetails } from '../../clients/clients.service.js';
import { fieldText, type Form } from '../requests/page-requests.js';
import { clientLogoPath } from '../../authorization-server/ports.js';
import type { ClientForm, DeveloperClient } from '../rendering/page-contents.js';

/** Gives the field values when an app is edited: also those that wait for an approval. */
export function formOf({ pending_changes, ...live }: ClientDetails): ClientForm {
  const client = { ...live, ...pending_changes };
  const byDefault = allowedOriginsOf({ ...client, allowed_origins: [] }, client.token_endpoint_auth_method);
  const isDefault = byDefault.join() === client.allowed_origins.join();
  return {
    name: client.name,
    type: client.type,
    redirect_uris: client.redirect_uris.join('\n'),
    allowed_origins: isDefault ? '' : client.allowed_origins.join('\n'),
    post_logout_redirect_uris: client.post_logout_redirect_uris.join('\n'),
    scopes: client.scopes,
    profile: client.profile,
    secret_auth_method: hasSecret(client) ? client.token_endpoint_auth_method : '',
    jwks: '',
    client_uri: client.client_uri ?? '',
    policy_uri: client.policy_uri ?? '',
    backchannel_logout_uri: client.backchannel_logout_uri ?? '',
  };
}

/** Gives the fields as sent, to show the form again. */
export function clientFormOf(form: Form): ClientForm {
  return {
    name: fieldText(form.name),
    type: form.type === 'native' ? 'native' : 'web',
    redirect_uris: fieldText(form.redirect_uris),
    allowed_origins: fieldText(form.allowed_origins),
    post_logout_redirect_uris: fieldText(form.post_logout_redirect_uris),
    scopes: [form.scopes ?? []].flat().filter(isScope),
    profile: fieldText(form.profile),
    secret_auth_method: fieldText(form.secret_auth_method),
    jwks: fieldText(form.jwks),
    client_uri: fieldText(form.client_uri),
    policy_uri: fieldText(form.policy_uri),
    backchannel_logout_uri: fieldText(form.backchannel_logout_uri),
  };
}

export const EMPTY_FORM: ClientForm = { ...clientFormOf({}), scopes: ALL_SCOPES, profile: 'oauth21' };

/**
 * Converts the form. @param profiles offered ones: with only one, the form has no such field @throws ClientFault if the keys are not JSON
 */
export function wantedOf(values: ClientForm, profiles: readonly string[]) {
  const profile = PROFILE_NAMES.find((name) => name === values.profile && profiles.includes(name));
  return {
    name: asShown(values.name),
    redirect_uris: linesOf(values.redirect_uris),
    allowed_origins: linesOf(values.allowed_origins),
    post_logout_redirect_uris: linesOf(values.post_logout_redirect_uris),
    scopes: ALL_SCOPES.filter((scope) => values.scopes.includes(scope)),
    jwks: values.jwks.trim() === '' ? null : keySetOf(values.jwks),
    ...(profiles.length > 1 && profile
      ? { profile, secret_auth_method: secretMethodOf(values.secret_auth_method) }
      : {}),
    client_uri: values.client_uri === '' ? null : values.client_uri,
    policy_uri: values.policy_uri === '' ? null : values.policy_uri,
    backchannel_logout_uri: values.backchannel_logout_uri === '' ? null : values.backchannel_logout_uri,
  } satisfies ClientChanges;
}

/** Tells whether the app authenticates with a secret. */
export function hasSecret({
  token_endpoint_auth_method: method,
}: Pick<ClientDetails, 'token_endpoint_auth_method'>): boolean {
  return secretMethodOf(method) !== null;
}

/** Splits a text into lines, without blank or duplicate ones. */
export function linesOf(text: string): string[] {
  return [...new Set(text.split(/\r?\n/).flatMap((line) => line.trim() || []))];
}

/** Gives an app as its developer sees it. @param reviewed whether apps need a review */
export function shownClient(client: ClientDetails, reviewed: boolean): DeveloperClient {
  const byPlatform = client.disabled_at !== null && !client.disabled_by_owner;
  return {
    client_id: client.client_id,
    name: client.name,
    type: client.type,
    state: byPlatform ? 'disabledByPlatform' : client.disabled_at === null ? 'enabled' : 'disabled',
    ...(reviewed || client.review !== 'none' ? { review: client.review } : {}),
    // The logo of a disabled app is not served.
    ...(client.has_logo && client.disabled_at === null ? { logo: clientLogoPath(client.client_id) } : {}),
  };
}
