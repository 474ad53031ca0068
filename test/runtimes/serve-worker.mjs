import { fileURLToPath } from "node:url";
import { Miniflare } from "miniflare";

const miniflare = new Miniflare({
  modules: true,
  scriptPath: fileURLToPath(new URL("worker.bundle.mjs", import.meta.url)),
  compatibilityDate: "2026-07-01",
  compatibilityFlags: ["nodejs_compat", "enable_request_signal"],
  host: "127.0.0.1",
  port: 0,
});
console.log(`Listening on ${(await miniflare.ready).origin}`);
process.once("SIGTERM", () => void miniflare.dispose());
