// Copies a text that is shown once or is long to type. Without this script, the reader selects it by hand.
for (const button of document.querySelectorAll('button[data-done]')) {
  const source = button.previousElementSibling;
  button.hidden = !navigator.clipboard; // browsers without TLS have no clipboard
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.nextElementSibling.textContent = button.dataset.done;
  });
}
