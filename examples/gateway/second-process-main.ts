// The demo's second process. It is forked with the repository's URL and the end of the run, tells
// its counts while it works and its books at the end. When the first process is gone, so is this
// one.
import { openRepository } from "zae-limiter";
import type { Message } from "./call-log.ts";
import { Gateway } from "./gateway.ts";
import { doubledClock } from "./time-and-random.ts";

const TELL_EVERY_MS = 200;

const [url = "", endMs = "", fault = ""] = process.argv.slice(2);
const leave = (): never => process.exit(1);
process.on("disconnect", leave);

const repository = await openRepository(
  url,
  fault === "double-refill" ? { clock: doubledClock() } : {},
);
const gateway = new Gateway(repository);
const timer = setInterval(() => tell({ counts: gateway.counts }), TELL_EVERY_MS);
const books = await gateway.serve(Number(endMs));
clearInterval(timer);
await repository.close();
tell({ books });
process.off("disconnect", leave);
process.disconnect();

function tell(message: Message): void {
  process.send?.(message);
}
