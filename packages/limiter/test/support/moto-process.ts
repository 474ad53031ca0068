import { isMotoInstalled, startMoto } from "../../../../tools/moto.mjs";
import { startServer, type StartedServer } from "./server-process.ts";

/** Why there is no moto; `undefined` when there is. */
export function whyMotoIsMissing(): string | undefined {
  return isMotoInstalled()
    ? undefined
    : "moto is not installed; run: node tools/moto.mjs (needs Python)";
}

/** Starts a server that speaks S3's language, and waits until it answers. */
export function startS3(): Promise<StartedServer> {
  return startServer((port) => startMoto(port, { stdio: "ignore" }));
}
