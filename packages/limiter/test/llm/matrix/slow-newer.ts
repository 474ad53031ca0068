/* Plays slow answers to the clients that need a newer Node: `node slow-newer.ts`. */
import { NEWER } from "./child.ts";
import { playSlowly } from "./slow-answers.ts";

process.stdout.write(JSON.stringify(await playSlowly(NEWER)));
