// Checks redirect URIs on the server while they are typed. Without this script, the form shows the same faults after it is sent.
const form = document.getElementById('client');
const field = form.elements.redirect_uris;
const said = document.getElementById('redirect_uris-fault');
let asked = 0;
let waiting;

async function check() {
  const question = ++asked;
  const { csrf, type } = form.elements;
  const response = await fetch(form.dataset.check, {
    method: 'POST',
    body: new URLSearchParams({ csrf: csrf.value, type: type.value, redirect_uris: field.value }),
  }).catch(() => undefined);
  // Ignores outdated responses. If the server does not respond, the form shows the faults after it is sent.
  if (question !== asked || !response?.ok) return;
  const { faults } = await response.json();
  said.replaceChildren(
    ...faults.map((fault) => Object.assign(document.createElement('p'), { textContent: fault })),
  );
  field.setAttribute('aria-invalid', String(faults.length > 0));
}

form.addEventListener('input', ({ target }) => {
  if (target !== field && target.name !== 'type') return;
  clearTimeout(waiting);
  waiting = setTimeout(check, 250);
});
