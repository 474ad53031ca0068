import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { startProvider } from "#local-provider";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it, vi } from "vitest";
import { chatServer, storeLimits } from "./server.ts";
import { visit } from "./visit.ts";

it("charges keys and their team, also for a reader that hangs up, and refuses with 429", async () => {
  const provider = await startProvider();
  for (const [name, value] of Object.entries(provider.environment)) vi.stubEnv(name, value);
  const repository = new MemoryRepository({ clock: new ManualClock() });
  const keys = ["ann-secret", "bob-secret"];
  await storeLimits(repository, keys);
  const server = chatServer(repository, keys).listen(0);
  await once(server, "listening");
  try {
    const lines: string[] = [];
    const url = `http://localhost:${(server.address() as AddressInfo).port}`;
    await visit(url, keys, repository, (line) => lines.push(line));
    expect(lines.slice(0, 3)).toEqual([
      "ann-secret: A bucket holds tokens, and refills over time.",
      "bob-secret: A bucket holds tokens, and refills over time.",
      expect.stringMatching(/^ann-secret hangs up after "A .*", and pays for what was delivered$/),
    ]);
    const [, later] = /^(\d+) long questions later: The request exceeds .*tpm/.exec(lines[3]!)!;
    const used = lines
      .slice(4)
      .map((line) => /: (\d+) requests, (\d+) tokens/.exec(line)!.map(Number));
    const [ann, bob, team] = used;
    expect(team![1]).toBe(3 + Number(later)); // two questions, one that was left, and the long ones
    expect(ann![1]! + bob![1]!).toBe(team![1]);
    expect(ann![2]! + bob![2]!).toBe(team![2]);
    expect((await fetch(`${url}/chat`, { method: "POST" })).status).toBe(401);
    expect(provider.open).toBe(0); // the provider has noticed that the reader is gone
  } finally {
    server.close().closeAllConnections();
    vi.unstubAllEnvs();
    await provider.stop();
    await repository.close();
  }
});
