import { readFileSync } from 'node:fs';
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { DURATIONS } from '../clients/access-durations.js';
import { parseKeySet } from '../clients/client-rules.js';
import { PROFILE_NAMES, PROFILES, unionOf } from '../clients/profiles.js';

/** Makes the option for an app's profile. */
export const profileOption = () =>
  new Option(
    '--profile <profile>',
    'rules for the app: oauth21, oidc (secrets, form_post) or fapi2 (FAPI 2.0); see docs/developers/oauth.md',
  ).choices(PROFILE_NAMES);

/** Makes the option for the authentication method. @param byDefault the default, as the help describes it */
export const authOption = (byDefault: string) =>
  new Option('--auth <method>', `authentication method; ${byDefault}`).choices(
    unionOf(({ authMethods }) => authMethods),
  );

/** Makes the option for the use of PKCE. */
export const pkceOption = () =>
  new Option(
    '--pkce <use>',
    'optional: PKCE not required with a nonce; off: neither required (a leaked code can be used). Only for confidential apps of the profile oidc',
  ).choices(PROFILES.oidc.pkce);

/** Makes the option for an app's maximum access duration. @param byDefault the default, as the help describes it */
export const longestAccessOption = (byDefault = '') =>
  new Option('--longest-access <days>', `longest access that members can give the app${byDefault}`).choices(
    DURATIONS,
  );

/** Makes the option `--applied-at`, which limits a decision to the application of this time. */
export const appliedAtOption = () =>
  new Option('--applied-at <time>', 'decide only if `applied_at` is this time (see `pua clients review`)');

/** Reads a file. @throws InvalidArgumentError */
export function readFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Reads a JWK set from a file, without checking its keys. @throws InvalidArgumentError */
export function readKeySet(file: string): { keys: object[] } {
  const text = readFile(file).toString();
  try {
    return parseKeySet(text);
  } catch {
    throw new InvalidArgumentError('It must contain a JWK set: {"keys": […]}.');
  }
}
