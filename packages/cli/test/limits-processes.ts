import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { openRepository } from "zae-limiter/open";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));

/** A process of the built program that applies a manifest, and what it says of its progress. */
export class ApplyProcess {
  readonly #child;
  readonly #closed: Promise<readonly unknown[]>;
  readonly #reached = new Map<number, () => void>();
  #lines = 0;
  #stderr = "";

  constructor(url: string, file: string) {
    this.#child = spawn(
      process.execPath,
      [PROGRAM, "limits", "apply", "--yes", "--repository", url, "-f", file],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    this.#closed = once(this.#child, "close");
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
      this.#lines = this.#stderr.match(/^Applied .*$/gm)?.length ?? 0;
      for (const [lines, resolve] of this.#reached) if (lines <= this.#lines) resolve();
    });
  }

  /** Waits until it has written so many lines of its ten, and sends it a signal at once. */
  async signalAt(lines: number, signal: NodeJS.Signals): Promise<void> {
    const reached = new Promise<void>((resolve) => this.#reached.set(lines, resolve));
    await Promise.race([reached, this.#closed]);
    expect(this.#lines, this.#stderr).toBeGreaterThanOrEqual(lines);
    this.signal(signal);
  }

  signal(signal: NodeJS.Signals): void {
    expect(this.#child.kill(signal), "It has ended already.").toBe(true);
  }

  /** How it ended. */
  async end(): Promise<{
    readonly code: unknown;
    readonly signal: unknown;
    readonly stderr: string;
  }> {
    const [code, signal] = await this.#closed;
    return { code, signal, stderr: this.#stderr };
  }
}

/** The rate of each entity that has a limit of its own for gpt-4, by id. */
export async function storedRates(url: string): Promise<Readonly<Record<string, number>>> {
  const repository = await openRepository(url, { create: false });
  try {
    const rates: Record<string, number> = {};
    let cursor: string | undefined;
    do {
      const page = await repository.listEntitiesWithCustomLimits("gpt-4", {
        limit: 1000,
        ...(cursor !== undefined && { cursor }),
      });
      for (const id of page.items)
        rates[id] = (await repository.getLimits(id, { resource: "gpt-4" }))[0]!.refillAmount;
      cursor = page.cursor;
    } while (cursor !== undefined);
    return rates;
  } finally {
    await repository.close();
  }
}
