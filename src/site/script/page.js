// Code of all pages; adds buttons that copy code.

export const all = (selector, root = document) => [...root.querySelectorAll(selector)];
export const one = (selector, root = document) => root.querySelector(selector);

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Announces visible changes to screen readers. */
export const say = (text) => (one('#heard').textContent = text);

for (const block of all('.code')) block.append(copyButton(block));

export function copyButton(block) {
  const button = make('button', { type: 'button', className: 'copy', textContent: 'Copy' });
  button.setAttribute('aria-label', 'Copy this code');
  const shown = () => all('pre', block).find((pre) => pre.getClientRects().length > 0) ?? one('pre', block);
  button.addEventListener('click', () => copy(button, shown().textContent));
  return button;
}

/** Copies a text, and confirms it on the button for two seconds. */
export async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  if (before === 'Copied') return;
  button.textContent = 'Copied';
  say('Copied');
  setTimeout(() => (button.textContent = before), 2_000);
}
