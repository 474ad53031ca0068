// The demo's second process. It is forked with the repository's URL and the time at which the run
// ends. It sends its counts while it works and its call log at the end, and exits when the first
// process is gone.
import { openRepository } from "zae-limiter/open";
import type { Message } from "./call-log.ts";
import { Gateway } from "./gateway.ts";
import { makeDoubledClock } from "./time-and-random.ts";

const REPORT_EVERY_MS = 200;

const [url = "", endMs = "", fault = ""] = process.argv.slice(2);
const exit = (): never => process.exit(1);
process.on("disconnect", exit);

const repository = await openRepository(
  url,
  fault === "double-refill" ? { clock: makeDoubledClock() } : {},
);
const gateway = new Gateway(repository);
const timer = setInterval(() => send({ counts: gateway.counts }), REPORT_EVERY_MS);
const log = await gateway.serve(Number(endMs));
clearInterval(timer);
await repository.close();
send({ log });
process.off("disconnect", exit);
process.disconnect();

function send(message: Message): void {
  process.send?.(message);
}
