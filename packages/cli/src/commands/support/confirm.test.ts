import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import type { Environment } from "../../environment.ts";
import { Cancelled } from "../../exit.ts";
import { confirm } from "./confirm.ts";

/** A terminal at which a line has been typed, and which stays open. */
function terminal(typed: string): Environment {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  stdin.write(typed);
  const nowhere = { write: () => true };
  return {
    stdin,
    stdout: nowhere,
    stderr: nowhere,
    env: {},
    nodeVersion: process.version,
    nowMs: () => 0,
    nodeNotice: () => undefined,
    openRepository: () => Promise.reject(new Error("not here")),
    runAggregator: () => Promise.reject(new Error("not here")),
    onInterrupt: () => () => {},
  };
}

it.each(["y\n", "n\n"])(
  "stops reading the terminal after the answer %j, so that the process can end",
  async (typed) => {
    const environment = terminal(typed);
    await confirm("Delete it?", false, environment).catch((error: unknown) =>
      expect(error).toBeInstanceOf(Cancelled),
    );
    expect(environment.stdin.isPaused()).toBe(true);
  },
);
