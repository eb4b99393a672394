import { nameWords } from '../model/json-schema.js';
import { READ_SCOPES } from '../resources/resources.js';

const { 'profile:read': profile, ...others } = READ_SCOPES;

/** The scopes of the API with the texts of the consent page. */
export const SCOPES = {
  'profile:read': profile,
  'profile:write': 'Change your name, bio and picture',
  ...others,
} as const;

export type Scope = keyof typeof SCOPES;

export const ALL_SCOPES = nameWords('Scope', Object.keys(SCOPES) as Scope[]);

/** Tells whether the text is a scope of the API. */
export function isScope(text: string): text is Scope {
  return Object.hasOwn(SCOPES, text);
}

/** Scopes of platform keys on `/api/platform`. Members cannot grant these scopes, and apps cannot request them. */
const PLATFORM_SCOPES = {
  'platform:read': 'Read what members did through the API',
  'platform:write': 'Feed the data of all members',
} as const;

export type PlatformScope = keyof typeof PLATFORM_SCOPES;

export const ALL_PLATFORM_SCOPES = Object.keys(PLATFORM_SCOPES) as PlatformScope[];

/** Tells whether the text is a scope of platform keys. */
export function isPlatformScope(text: string): text is PlatformScope {
  return Object.hasOwn(PLATFORM_SCOPES, text);
}
