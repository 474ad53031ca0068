// Shapes as SVG text. Every picture has its own paper, so that it is readable on any page, and
// colours for light and dark.

const THEME = `
  svg { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #c6ced6; --box: #f3f5f8;
    --blue: #0860c9; --blue-soft: #d8ebff; --red: #c01f2b; --red-soft: #ffdcd9;
    --green: #187433; --green-soft: #d5f3dc; --amber: #8a5c00; --amber-soft: #fff0c2;
    --violet: #7a3fc4; --violet-soft: #efe3ff; }
  @media (prefers-color-scheme: dark) { svg { --paper: #0f141b; --ink: #e9eef4; --soft: #9aa6b2;
    --line: #3a444f; --box: #1a212a; --blue: #6cb0ff; --blue-soft: #14304f; --red: #ff8078;
    --red-soft: #4d1b1e; --green: #5fd07a; --green-soft: #12381f; --amber: #e6b450;
    --amber-soft: #3f2f0a; --violet: #c39bff; --violet-soft: #33224d; } }
  text { fill: var(--ink); font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; }
  .soft { fill: var(--soft); } .small { font-size: 12px; } .bold { font-weight: 600; }
  .middle { text-anchor: middle; } .end { text-anchor: end; }
  .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .blue { fill: var(--blue); } .red { fill: var(--red); } .green { fill: var(--green); }
  .amber { fill: var(--amber); } .violet { fill: var(--violet); } .paper { fill: var(--paper); }
`;

/** A whole picture. `title` is what a screen reader says. */
export function picture({ width, height, title, style = "" }, shapes) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${THEME}${style}</style>`,
    rect(0.5, 0.5, width - 1, height - 1, {
      fill: "var(--paper)",
      stroke: "var(--line)",
      rx: 8,
    }),
    ...shapes.flat(Infinity),
    "</svg>",
    "",
  ].join("\n");
}

export function text(x, y, content, classes = "") {
  const kind = classes === "" ? "" : ` class="${classes}"`;
  return `<text x="${number(x)}" y="${number(y)}"${kind}>${escapeXml(content)}</text>`;
}

export function rect(x, y, width, height, attributes = {}) {
  const place = { x, y, width, height };
  return `<rect ${attributesText({ ...place, ...attributes })}/>`;
}

export function line(x1, y1, x2, y2, attributes = {}) {
  return `<line ${attributesText({ x1, y1, x2, y2, stroke: "var(--line)", ...attributes })}/>`;
}

export function path(d, attributes = {}) {
  return `<path ${attributesText({ d, fill: "none", ...attributes })}/>`;
}

export function circle(cx, cy, r, attributes = {}) {
  return `<circle ${attributesText({ cx, cy, r, ...attributes })}/>`;
}

/** A line with a head at its end. It goes straight, so the head's direction is the line's. */
export function arrow(x1, y1, x2, y2, colour = "var(--soft)") {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const head = [-0.45, 0.45].map((turn) => [
    x2 - 9 * Math.cos(angle + turn),
    y2 - 9 * Math.sin(angle + turn),
  ]);
  const points = [head[0], [x2, y2], head[1]].map((point) => point.map(number).join(" "));
  return [
    line(x1, y1, x2, y2, { stroke: colour, "stroke-width": 1.5 }),
    path(`M${points.join(" L")}`, { stroke: colour, "stroke-width": 1.5 }),
  ];
}

/** A number as it is written: with thousands separated. */
export function amount(value) {
  return value.toLocaleString("en-US");
}

/** Coordinates to a tenth: more would only make the file longer. */
export function number(value) {
  return Number(value.toFixed(1));
}

function attributesText(attributes) {
  return Object.entries(attributes)
    .map(([name, value]) => `${name}="${typeof value === "number" ? number(value) : value}"`)
    .join(" ");
}

export function escapeXml(content) {
  return String(content).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
