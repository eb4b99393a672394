// The input and output of every page in this folder. The output is the page's text: the member that the page read.
export const { ISSUER, CLIENT_ID, REDIRECT_URI } = globalThis.SETTINGS;
/** Whether this page starts the sign-in; otherwise, the member has returned to it. */
export const begin = !new URLSearchParams(location.search).has('code');

export async function me(token) {
  const response = await fetch(`${ISSUER}/api/public/me`, { headers: { Authorization: `Bearer ${token}` } });
  return (await response.json()).username;
}

export function done(username, again) {
  document.body.textContent = JSON.stringify({ username, again });
}
