// A provider that is slow is not a reason to end a call, whatever the client.
import { beforeAll, describe, expect, it } from "vitest";
import { isSkipped, runNewer, TIMEOUT_MS } from "../newer-node.ts";
import { NEWER } from "./child.ts";
import type { Client } from "./client.ts";
import { plainFetch } from "./clients/plain-fetch.ts";
import { OLDER } from "./older-clients.ts";
import { playSlowly, SLOW_KINDS, type SlowAnswer } from "./slow-answers.ts";

type Played = Readonly<Record<string, SlowAnswer>>;

function describeSlowly(clients: readonly Client[], play: () => Promise<Played>): void {
  let played: Played;
  beforeAll(async () => {
    played = await play();
  }, TIMEOUT_MS);
  it.each(clients.flatMap(({ name }) => SLOW_KINDS.map((kind) => `${kind}, ${name}`)))(
    "%s",
    (name) => expect(played[name]).toEqual({ ends: ["complete reported"] }),
  );
}

describe("under any Node", () => {
  const clients = [plainFetch, ...OLDER];
  describeSlowly(clients, () => playSlowly(clients));
});

describe.skipIf(isSkipped)("under Node 24", () => {
  describeSlowly(NEWER, async () => {
    const { printed } = await runNewer(new URL("slow-newer.ts", import.meta.url));
    return printed as Played;
  });
});
