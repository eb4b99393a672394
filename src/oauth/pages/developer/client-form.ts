import { ALL_SCOPES, isScope } from '../../../auth/scopes.js';
import { asShown } from '../../../values/names.js';
import { allowedOriginsOf, ClientFault } from '../../admin/client-rules.js';
import type { ClientChanges, ClientDetails } from '../../admin/clients.service.js';
import { textOf } from '../form-body.js';
import type { Form } from '../form-body.js';
import { clientLogoPath } from '../page-client.js';
import type { ClientForm, DeveloperClient } from '../pages.js';

/** The field values when an app is registered. */
export const EMPTY_FORM: ClientForm = {
  name: '',
  type: 'web',
  redirect_uris: '',
  allowed_origins: '',
  post_logout_redirect_uris: '',
  scopes: ALL_SCOPES,
  jwks: '',
  client_uri: '',
  policy_uri: '',
};

/** Gives the field values when an app is edited. */
export function formOf(client: ClientDetails): ClientForm {
  const byDefault = allowedOriginsOf({ ...client, allowed_origins: [] });
  const isDefault = byDefault.join() === client.allowed_origins.join();
  return {
    name: client.name,
    type: client.type,
    redirect_uris: client.redirect_uris.join('\n'),
    allowed_origins: isDefault ? '' : client.allowed_origins.join('\n'),
    post_logout_redirect_uris: client.post_logout_redirect_uris.join('\n'),
    scopes: client.scopes,
    jwks: '',
    client_uri: client.client_uri ?? '',
    policy_uri: client.policy_uri ?? '',
  };
}

/** Gives the form as it was filled in, to be shown again. */
export function clientFormOf(form: Form): ClientForm {
  return {
    name: textOf(form.name),
    type: form.type === 'native' ? 'native' : 'web',
    redirect_uris: textOf(form.redirect_uris),
    allowed_origins: textOf(form.allowed_origins),
    post_logout_redirect_uris: textOf(form.post_logout_redirect_uris),
    scopes: [form.scopes ?? []].flat().filter(isScope),
    jwks: textOf(form.jwks),
    client_uri: textOf(form.client_uri).trim(),
    policy_uri: textOf(form.policy_uri).trim(),
  };
}

/** Converts the form for {@link ClientsService}. @throws ClientFault if the keys are not JSON */
export function wantedOf(values: ClientForm) {
  return {
    name: asShown(values.name),
    redirectUris: linesOf(values.redirect_uris),
    allowedOrigins: linesOf(values.allowed_origins),
    postLogoutRedirectUris: linesOf(values.post_logout_redirect_uris),
    scopes: ALL_SCOPES.filter((scope) => values.scopes.includes(scope)),
    jwks: keysOf(values.jwks),
    clientUri: values.client_uri === '' ? undefined : values.client_uri,
    policyUri: values.policy_uri === '' ? undefined : values.policy_uri,
  } satisfies ClientChanges;
}

function keysOf(text: string): { keys: Record<string, unknown>[] } | undefined {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text) as { keys: Record<string, unknown>[] };
  } catch {
    throw new ClientFault('noKeys', 'jwks');
  }
}

/** Splits a text into lines, without blank or duplicate ones. */
export function linesOf(text: string): string[] {
  return [...new Set(text.split(/\r?\n/).flatMap((line) => line.trim() || []))];
}

/** Gives an app as its developer sees it. */
export function shownClient(client: ClientDetails): DeveloperClient {
  const byPlatform = client.disabled_at !== null && !client.disabled_by_owner;
  return {
    client_id: client.client_id,
    name: client.name,
    type: client.type,
    state: byPlatform ? 'disabledByPlatform' : client.disabled_at === null ? 'enabled' : 'disabled',
    // The logo of a disabled app is not served.
    ...(client.has_logo && client.disabled_at === null ? { logo: clientLogoPath(client.client_id) } : {}),
  };
}
