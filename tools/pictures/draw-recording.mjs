// A recording of `npm start`: the demo runs for real, on a terminal that keeps what it is given.
// The picture plays some of its frames, and ends with what the demo found.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { escapeXml, number, picture, rect, text } from "./svg.mjs";

const COLUMNS = 60;
const RUN_MS = 20_000;
/** The live view is redrawn four times a second; the picture shows every eighth. */
const EVERY = 8;
const FRAME_SECONDS = 0.8;
const LAST_SECONDS = 8;

const CELL = { width: 8.4, height: 18 };
const [MARGIN, BAR] = [20, 34];

/** Lines of the live view that are bold on a terminal, and the time above it. */
const HEADING = /Granted|Limits of| s of /;

/** Blocks of a bar, by how many eighths of a cell they fill. */
const BLOCKS = ["·", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

export async function drawRecording() {
  const { intro, frames, ending } = await record();
  const lines = intro.length + frames[0].length;
  const rows = Math.max(lines, ending.length);
  const width = number(COLUMNS * CELL.width + 2 * MARGIN);
  const height = BAR + rows * CELL.height + MARGIN;
  const shown = frames.filter((_, index) => index % EVERY === 0 || index === frames.length - 1);
  const seconds = shown.length * FRAME_SECONDS + LAST_SECONDS;
  const shapes = [
    rect(1, 1, width - 2, BAR - 9, { fill: "var(--box)", rx: 8 }),
    [0, 1, 2].map((index) => rect(14 + index * 18, 8, 10, 10, { fill: "var(--line)", rx: 5 })),
    text(width / 2, 18, "npm start", "small soft middle mono"),
    group("live", screen(intro, 0)),
    shown.map((frame, index) => group(`frame f${index}`, screen(frame, intro.length))),
    group("frame ending", screen(ending, 0)),
  ];
  return picture(
    { width, height, title: "A recording of npm start", style: animation(shown.length, seconds) },
    shapes,
  );
}

/** Runs the demo, and returns the lines above the live view, the views, and the end. */
async function record() {
  const folder = mkdtempSync(join(tmpdir(), "recording-"));
  const built = new URL("../../examples/gateway/dist/", import.meta.url);
  const { runDemo } = await import(new URL("demo.js", built).href);
  const { summaryText } = await import(new URL("summary.js", built).href);
  const written = [];
  const output = { isTTY: true, columns: COLUMNS, write: (piece) => written.push(piece) };
  try {
    const file = join(folder, "demo.db");
    const result = await runDemo({ file, lengthMs: RUN_MS, output, paint: plain });
    const [intro, ...frames] = written.map((piece) => splitLines(piece));
    return { intro, frames, ending: splitLines(summaryText(result, COLUMNS, plain)).slice(1) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function plain(_format, written) {
  return written;
}

function splitLines(piece) {
  return stripVTControlCharacters(piece).replace(/\n$/, "").split("\n");
}

/** Lines of a terminal. Blocks are drawn, because fonts differ in how wide they make them. */
function screen(lines, firstRow) {
  return lines.map((content, index) => {
    const top = BAR + (firstRow + index) * CELL.height;
    const blocks = [...content].flatMap((character, column) => {
      const eighths = BLOCKS.indexOf(character);
      return eighths === -1 ? [] : [block(eighths, MARGIN + column * CELL.width, top)];
    });
    const words = [...content.matchAll(/[^ ·▏▎▍▌▋▊▉█]+(?: [^ ·▏▎▍▌▋▊▉█]+)*/g)].map((match) => {
      const x = number(MARGIN + match.index * CELL.width);
      const length = number(match[0].length * CELL.width);
      const kind = match[0] === "ok" ? "mono green" : HEADING.test(content) ? "mono bold" : "mono";
      return `<text x="${x}" y="${top + 13}" class="${kind}" textLength="${length}">${escapeXml(match[0])}</text>`;
    });
    return [...blocks, ...words];
  });
}

function block(eighths, left, top) {
  if (eighths === 0) return rect(left + 3, top + 8, 2, 2, { fill: "var(--soft)" });
  return rect(left, top + 2, (CELL.width * eighths) / 8, CELL.height - 4, { fill: "var(--blue)" });
}

function group(classes, shapes) {
  return [`<g class="${classes}">`, ...shapes.flat(Infinity), "</g>"];
}

/** Shows one frame after another. Readers who prefer reduced motion see only the end. */
function animation(frames, seconds) {
  const percent = (value) => number((value / seconds) * 100);
  const endingAt = percent(frames * FRAME_SECONDS);
  const turns = Array.from({ length: frames }, (_, index) => {
    const [from, to] = [percent(index * FRAME_SECONDS), percent((index + 1) * FRAME_SECONDS)];
    return (
      `.f${index} { animation-name: f${index}; } @keyframes f${index} { ` +
      `0% { visibility: ${index === 0 ? "visible" : "hidden"}; } ` +
      `${from}% { visibility: visible; } ${to}%, 100% { visibility: hidden; } }`
    );
  });
  return `
  .live, .frame { animation-duration: ${seconds}s; animation-iteration-count: infinite; animation-timing-function: step-end; }
  .frame { visibility: hidden; }
  .live { animation-name: live; } @keyframes live { 0% { visibility: visible; } ${endingAt}%, 100% { visibility: hidden; } }
  .ending { animation-name: ending; } @keyframes ending { 0% { visibility: hidden; } ${endingAt}%, 100% { visibility: visible; } }
  ${turns.join("\n  ")}
  @media (prefers-reduced-motion: reduce) { .live, .frame { animation: none; visibility: hidden; } .ending { visibility: visible; } }
`;
}
