// The input and output of every program in this folder, which prints the sign-in URL, then the member that it read.
import { createInterface } from 'node:readline';

/** `AUTH` is the client's authentication method; `CLIENT_SECRET` is empty for `none`. */
export const { ISSUER, CLIENT_ID, REDIRECT_URI, AUTH, CLIENT_SECRET } = process.env;

/** Prints the sign-in URL. @returns the URL with which the member returned */
export async function signIn(url) {
  console.log(String(url));
  for await (const line of createInterface({ input: process.stdin })) return line;
}

/** @returns the username of a token's member */
export async function me(token) {
  const response = await fetch(`${ISSUER}/api/public/me`, { headers: { Authorization: `Bearer ${token}` } });
  return (await response.json()).username;
}

export function done(username, again) {
  console.log(JSON.stringify({ username, again }));
  process.exit();
}
