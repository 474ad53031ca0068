/** A line of a chart; a point without a value is a gap. */
export interface Series {
  readonly name: string;
  readonly values: readonly (number | undefined)[];
}

/** A chart over time. */
export interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
}

const [WIDTH, HEIGHT] = [720, 220];
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 16, 12, 28];
const LINES = 4;

/** When the points of a chart are, and when it ends. */
export interface TimeAxis {
  readonly atSeconds: readonly number[];
  readonly endSeconds: number;
}

/** Draws a chart as SVG that needs no script and no style sheet but the page's own. */
export function drawChart(
  { title, unit, series }: Chart,
  { atSeconds, endSeconds }: TimeAxis,
): string {
  const largest = roundUp(
    Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))),
  );
  const x = (seconds: number): number => LEFT + (seconds / endSeconds) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number =>
    HEIGHT - BOTTOM - (value / largest) * (HEIGHT - TOP - BOTTOM);
  const grid = Array.from({ length: LINES + 1 }, (_, index) => (largest / LINES) * index).map(
    (value) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${place(y(value))}" y2="${place(y(value))}"/>` +
      `<text x="${LEFT - 8}" y="${place(y(value) + 4)}" text-anchor="end">${show(value)}</text>`,
  );
  const lines = series.map(({ name, values }, index) => {
    const points = atSeconds.flatMap((seconds, at) => {
      const value = values[at];
      return value === undefined ? [] : [{ seconds, value }];
    });
    const path = points.map(({ seconds, value }) => `${place(x(seconds))},${place(y(value))}`);
    const dots = points.map(
      ({ seconds, value }) =>
        `<circle class="dot-${index}" cx="${place(x(seconds))}" cy="${place(y(value))}" r="3"><title>` +
        `${escapeHtml(name)} at ${show(seconds)} s: ${show(value)} ${escapeHtml(unit)}</title></circle>`,
    );
    return `<polyline class="line-${index}" points="${path.join(" ")}"/>${dots.join("")}`;
  });
  const legend = series.map(
    ({ name }, index) => `<span class="key-${index}">${escapeHtml(name)}</span>`,
  );
  return (
    `<figure><figcaption>${escapeHtml(title)} (${escapeHtml(unit)}) ${legend.join(" ")}</figcaption>` +
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">` +
    `${grid.join("")}<text x="${LEFT}" y="${HEIGHT - 8}">0 s</text>` +
    `<text x="${WIDTH - RIGHT}" y="${HEIGHT - 8}" text-anchor="end">${show(endSeconds)} s</text>` +
    `${lines.join("")}</svg></figure>`
  );
}

/** Makes a text safe in HTML and in its attributes. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The next number that begins with 1, 2 or 5, so that the lines of the grid have round values. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((digit) => digit * power >= value) ?? 10) * power;
}

function place(coordinate: number): string {
  return coordinate.toFixed(1);
}

function show(value: number): string {
  return String(Number(value.toPrecision(4)));
}
