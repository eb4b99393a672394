const WIDTH = 860;
const LEFT = 240;
const BAR = 16;
const COLOURS = ['#0b7285', '#66a9b5', '#343a40', '#868e96', '#ced4da'];

/**
 * Draws horizontal bars in groups. A name has the same colour in all groups.
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
  return svg(y, title, parts);
}

function svg(height, title, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">
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

const PANEL = { height: 110, gap: 34, left: 60, right: 20 };

/**
 * Draws lines over time, one panel per measure, on a common axis. A point without a finite value breaks its line.
 *
 * @param {string} title
 * @param {{name: string, lines: {name: string, points: [x: number, y: number][]}[]}[]} panels
 * @param {string} unit of x
 * @returns {string} SVG
 */
export function timeSeries(title, panels, unit) {
  const most = Math.max(
    ...panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([x]) => x))),
  );
  const width = WIDTH - PANEL.left - PANEL.right;
  const parts = [];
  let y = 44;
  for (const { name, lines } of panels) {
    const values = lines.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite);
    const top = niceAbove(Math.max(...values, 1e-9));
    parts.push(text(16, y, name).replace('<text', '<text font-weight="600"'));
    let x = 300;
    for (const [i, line] of lines.entries()) {
      parts.push(`<rect x="${x}" y="${y - 9}" width="12" height="3" fill="${COLOURS[i * 2]}"/>`);
      parts.push(text(x + 18, y, line.name));
      x += 40 + line.name.length * 6;
    }
    y += 10;
    for (const share of [0, 0.5, 1]) {
      const at = y + PANEL.height * (1 - share);
      parts.push(`<path d="M${PANEL.left} ${at}h${width}" stroke="#dee2e6"/>`);
      parts.push(text(PANEL.left - 6, at + 4, (top * share).toLocaleString('en'), 'end'));
    }
    for (const [i, { points }] of lines.entries()) {
      let isDown = false;
      let path = '';
      for (const [at, value] of points) {
        if (!Number.isFinite(value)) {
          isDown = false;
          continue;
        }
        const left = PANEL.left + (at / most) * width;
        const height = y + PANEL.height * (1 - value / top);
        path += `${isDown ? 'L' : 'M'}${left.toFixed(1)} ${height.toFixed(1)}`;
        isDown = true;
      }
      parts.push(`<path d="${path}" fill="none" stroke="${COLOURS[i * 2]}" stroke-width="1.3"/>`);
    }
    y += PANEL.height + PANEL.gap;
  }
  for (let i = 0; i <= 6; i++)
    parts.push(text(PANEL.left + (i / 6) * width, y - 14, `${((most * i) / 6).toFixed(0)}`, 'middle'));
  parts.push(text(PANEL.left + width, y, unit, 'end'));
  return svg(y + 10, title, parts);
}

/** 1, 2 or 5 times a power of ten. */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((factor) => factor * power >= value) * power;
}
