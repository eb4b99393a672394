// Runs in the head, so that all samples have the reader's chosen language at the first paint.
{
  const LANGUAGE = 'public-user-api:language';
  let kept = localStorage.getItem(LANGUAGE);

  const choose = () => {
    for (const input of document.querySelectorAll(`.languages input[value="${kept}"]`)) input.checked = true;
  };
  if (/^[a-z]+$/.test(kept ?? '')) {
    const arriving = new MutationObserver(choose);
    arriving.observe(document, { childList: true, subtree: true });
    document.addEventListener('DOMContentLoaded', () => arriving.disconnect());
  }
  document.addEventListener('change', ({ target }) => {
    if (!target.matches('.languages input')) return;
    const before = target.getBoundingClientRect().top;
    kept = target.value;
    choose();
    scrollBy({ top: target.getBoundingClientRect().top - before, behavior: 'instant' });
    localStorage.setItem(LANGUAGE, kept);
  });
}
