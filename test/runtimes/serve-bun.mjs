/* global Bun */
import { answer } from "./essentials.mjs";

const { port } = Bun.serve({ fetch: answer, hostname: "127.0.0.1", port: 0 });
console.log(`Listening on http://127.0.0.1:${port}`);
