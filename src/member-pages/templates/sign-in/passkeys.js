// Passkeys (WebAuthn level 3) on the sign-in and account pages. In browsers without passkeys, changes nothing.
(() => {
  const form = document.getElementById('passkey');
  if (!form || !window.PublicKeyCredential || !navigator.credentials) return;
  document.getElementById('no-passkeys')?.remove();
  form.hidden = false;
  const said = form.querySelector('[role=status]');
  /** Aborts waiting for a passkey from the username's autofill. */
  let waiting = new AbortController();
  let busy = false;

  // Replace PublicKeyCredential.parse…FromJSON and toJSON, which some browsers lack.
  const toBytes = (text) =>
    Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (byte) => byte.charCodeAt(0));
  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replaceAll('=', '');

  async function askForOptions() {
    const body = new URLSearchParams({ csrf: form.elements.csrf.value });
    const response = await fetch(form.dataset.options, { method: 'POST', body });
    if (response.status === 409) location.assign(form.dataset.confirm);
    if (!response.ok) throw new Error(`answered with ${response.status}`);
    const options = await response.json();
    options.challenge = toBytes(options.challenge);
    if (options.user) options.user.id = toBytes(options.user.id);
    for (const known of options.excludeCredentials ?? []) known.id = toBytes(known.id);
    return options;
  }

  function send({ id, type, response }) {
    const answer = { transports: response.getTransports?.() };
    for (const name of [
      'clientDataJSON',
      'attestationObject',
      'authenticatorData',
      'signature',
      'userHandle',
    ])
      if (response[name]) answer[name] = toText(response[name]);
    form.elements.credential.value = JSON.stringify({ id, type, response: answer });
    form.submit();
  }

  /** Renews the challenge before it expires after two minutes, but not while the browser's dialog has the focus. */
  async function waitForAutofill() {
    waiting = new AbortController();
    const { signal } = waiting;
    const renewal = setTimeout(() => {
      const renew = () => {
        if (signal.aborted) return;
        waiting.abort();
        void waitForAutofill();
      };
      if (document.hasFocus()) renew();
      else addEventListener('focus', renew, { once: true, signal });
    }, 100_000);
    signal.addEventListener('abort', () => clearTimeout(renewal));
    try {
      const publicKey = await askForOptions();
      if (!signal.aborted)
        send(await navigator.credentials.get({ mediation: 'conditional', publicKey, signal }));
    } catch {
      // The member chose no passkey, or aborted, and can still use the button or the password.
    }
  }

  async function autofill() {
    const available = await window.PublicKeyCredential.isConditionalMediationAvailable?.();
    if (available && document.querySelector('[autocomplete~=webauthn]')) await waitForAutofill();
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    said.textContent = '';
    waiting.abort();
    try {
      const publicKey = await askForOptions();
      send(
        await (publicKey.user
          ? navigator.credentials.create({ publicKey })
          : navigator.credentials.get({ publicKey })),
      );
    } catch ({ name }) {
      const words = { InvalidStateError: 'known', NotAllowedError: 'cancelled', AbortError: 'cancelled' };
      said.textContent = form.dataset[words[name]] ?? form.dataset.failed;
      void autofill();
    }
    busy = false;
  });
  void autofill();
})();
