// Draws the pictures of the documents from what the library does, and writes them to docs/pictures.
//
//   npm run pictures              the drawings
//   npm run pictures -- --record  the drawings, and a recording of `npm start` (20 seconds)
//   npm run pictures -- --check   writes nothing; fails when a drawing is not what would be drawn
//
// A recording shows what one run did, so no two are alike, and it is not checked.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cascade } from "./pictures/cascade.mjs";
import { levels } from "./pictures/levels.mjs";
import { oneCall } from "./pictures/one-call.mjs";
import { drawDayLimits } from "./pictures/draw-day-limits.mjs";
import { drawRecording } from "./pictures/draw-recording.mjs";
import { drawSharedWrite } from "./pictures/draw-shared-write.mjs";

const folder = new URL("../docs/pictures/", import.meta.url);
const drawings = {
  "one-call.svg": oneCall,
  "levels.svg": levels,
  "cascade.svg": cascade,
  "shared-write.svg": drawSharedWrite,
  "day-limits.svg": drawDayLimits,
};

const flags = new Set(process.argv.slice(2));
mkdirSync(folder, { recursive: true });
for (const [name, draw] of Object.entries(drawings)) {
  const drawn = await draw();
  const file = new URL(name, folder);
  if (!flags.has("--check")) writeFileSync(file, drawn);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== drawn) {
    console.error(`docs/pictures/${name} is out of date: npm run pictures`);
    process.exitCode = 1;
  }
}
if (flags.has("--record")) writeFileSync(new URL("demo.svg", folder), await drawRecording());
