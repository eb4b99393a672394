/** What a credential may be allowed to do on the API, each with the plain words that consent shows. */
export const SCOPES = {
  'profile:read': 'See your profile: names, bio, picture and counts',
  'profile:write': 'Change your name, bio and picture',
  'events:read': 'See the events you organise, attend or are invited to',
  'connections:read': 'See the people you are connected with',
  'achievements:read': 'See your achievements and your progress',
} as const;

export type Scope = keyof typeof SCOPES;

export const ALL_SCOPES = Object.keys(SCOPES) as Scope[];

/** Tells whether the text is a scope of the API. */
export function isScope(text: string): text is Scope {
  return Object.hasOwn(SCOPES, text);
}
