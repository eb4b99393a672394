// The input of every program here, and its output: the sign-in URL, then the member that it read.
import { createInterface } from 'node:readline';

/** `AUTH` is how the client authenticates; `CLIENT_SECRET` is empty where by nothing. */
export const { ISSUER, CLIENT_ID, REDIRECT_URI, AUTH, CLIENT_SECRET } = process.env;

/** Prints where the member signs in. @returns the address at which they came back */
export async function signIn(url) {
  console.log(String(url));
  for await (const line of createInterface({ input: process.stdin })) return line;
}

/** @returns the username that the API has for a token */
export async function me(token) {
  const response = await fetch(`${ISSUER}/api/public/me`, { headers: { Authorization: `Bearer ${token}` } });
  return (await response.json()).username;
}

export function done(username, again) {
  console.log(JSON.stringify({ username, again }));
  process.exit();
}
