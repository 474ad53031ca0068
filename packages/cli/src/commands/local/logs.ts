import { createReadStream, existsSync, readFileSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { LocalError, UsageError } from "../../exit.ts";
import { countArgument } from "../support/arguments.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";
import { resolveLocalPlace } from "./place.ts";
import type { LocalFolder } from "./system/local-folder.ts";

/** Adds `local logs`. */
export function addLogsCommand(noun: Command, session: Session): void {
  addVerb(noun, {
    usage: "logs",
    summary: "Shows the log of the local system: its engine, its aggregator and its supervisor.",
    examples: ["local logs", "local logs --follow --tail 20"],
  })
    .option("-f, --follow", "Keep showing new lines, until it ends or is interrupted.")
    .option("--tail <number>", "Show at most this many of the last lines.", countArgument, 100)
    .action(async ({ follow = false, tail }: LogsOptions, command: Command) => {
      const screen = session.screen(command);
      if (follow && screen.json)
        throw new UsageError("--follow shows lines as they come. Leave out --json.");
      const { stack, folder } = resolveLocalPlace(command, session);
      if (!existsSync(folder.log))
        throw new LocalError(`${stack} has no log: it was never started.`);
      const text = readFileSync(folder.log, "utf8");
      const lines = text.trimEnd().split("\n").slice(-tail);
      screen.show(lines, () => lines.map((line) => `${line}\n`).join(""));
      if (follow) await followLog(folder, Buffer.byteLength(text), session);
    });
}

interface LogsOptions {
  readonly follow?: boolean;
  readonly tail: number;
}

const POLL_MS = 200;

async function followLog(
  folder: LocalFolder,
  from: number,
  { environment }: Session,
): Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const stopListening = environment.onInterrupt(() => stopping.abort(), { orUnread: true });
  try {
    for (let start = from; ;) {
      // Read before the log, so that the last lines of a system that ends are shown.
      const isOver = signal.aborted || folder.find().is !== "alive";
      const size = statSync(folder.log, { throwIfNoEntry: false })?.size ?? 0;
      // A shorter log is a new one.
      if (size < start) start = 0;
      if (size > start)
        for await (const part of createReadStream(folder.log, { start, end: size - 1 }))
          environment.stdout.write(String(part));
      start = size;
      if (isOver) return;
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    stopListening();
  }
}
