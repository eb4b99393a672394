const WIDTH = 860;
const LEFT = 240;
const BAR = 16;
const COLOURS = ['#0b7285', '#66a9b5', '#343a40', '#868e96', '#ced4da'];

/**
 * Horizontal bars in groups. A name has one colour in all of them.
 *
 * @param {string} title
 * @param {{name: string, bars: {name: string, value: number, label: string}[]}[]} groups
 * @returns {string} SVG
 */
export function barChart(title, groups) {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  const scale = (WIDTH - LEFT - 170) / most;
  const parts = [];
  let y = 64;
  const names = [...new Set(groups.flatMap(({ bars }) => bars.map(({ name }) => name)))];
  const colourOf = (name) => COLOURS[names.indexOf(name) % COLOURS.length];
  let x = 16;
  for (const name of names) {
    parts.push(`<rect x="${x}" y="36" width="12" height="12" fill="${colourOf(name)}"/>`);
    parts.push(text(x + 18, 46, name));
    x += 30 + name.length * 5.8;
  }
  for (const { name, bars } of groups) {
    parts.push(text(LEFT - 10, y + (bars.length * BAR) / 2 + 4, name, 'end'));
    for (const { name: bar, value, label } of bars) {
      const width = Math.max(1, value * scale).toFixed(1);
      parts.push(`<rect x="${LEFT}" y="${y}" width="${width}" height="${BAR - 3}" fill="${colourOf(bar)}"/>`);
      parts.push(text(LEFT + Number(width) + 6, y + BAR - 6, label));
      y += BAR;
    }
    y += 14;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
<text x="16" y="22" font-size="15" font-weight="600">${escape(title)}</text>
${parts.join('\n')}
</svg>
`;
}

function text(x, y, value, anchor = 'start') {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${escape(value)}</text>`;
}

function escape(value) {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
