import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { openRepository } from "zae-limiter/open";
import { seededRandom } from "zae-limiter/testing";
import { getEach, seedsFromEnvironment } from "../../limiter/test/support/seeded/seeds.ts";
import { zaeLimiter } from "./command-line.ts";
import { manifestFiles, manyEntities } from "./manifest-file.ts";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));

const TIMEOUT_MS = 120_000;

/**
 * The last line of progress, of ten, at which a signal is sent: a process on a busy machine goes on
 * for a while before it arrives.
 */
const LAST_LINE = 4;

const OVERTAKEN =
  /error: Another apply to namespace default started meanwhile, so this one has stopped/;

/** How thorough a run is. */
export interface Extent {
  /** How many entities a manifest has: a hundred at least, so that progress is shown. */
  readonly entities: number;
  /** How many times processes are killed, and how many times two run at once, unless SEEDS says. */
  readonly seeds: number;
  /** Whether a place is unlocked. By default, no place has one. */
  readonly isFree?: (url: string) => Promise<boolean>;
}

/**
 * What holds for processes that apply manifests to one place, which is new for each test. The
 * moments are seeded, and told by the progress that a process shows.
 */
export function applyingProcesses(newPlace: () => string, extent: Extent): void {
  const manifest = manifestFiles();
  const { entities } = extent;
  const seeds = getEach(seedsFromEnvironment({ usual: extent.seeds }));
  // The second manifest changes most of the first one, leaves out some, and adds some.
  const first = (): Content => manyEntities(entities, { rpm: 1 });
  const second = (): Content => manyEntities(entities, { rpm: 2, from: Math.floor(entities / 4) });

  it.each(seeds)(
    "one that is killed in the middle is completed by the next, seed %i",
    { timeout: TIMEOUT_MS },
    async (seed) => {
      const url = newPlace();
      await (await openRepository(url)).close();
      const base = ["limits", "apply", "--yes", "--repository", url, "-f", manifest(first())];
      expect((await zaeLimiter(base, { open: openRepository })).code).toBe(0);
      const file = manifest(second());
      const killed = new ApplyProcess(url, file);
      await killed.signalAt(getMoment(seed), "SIGKILL");
      expect(await killed.end()).toMatchObject({ signal: "SIGKILL" });
      expect([first(), second()].map(listRates)).not.toContainEqual(await storedRates(url));
      const next = await new ApplyProcess(url, file).end();
      expect(next, next.stderr).toMatchObject({ code: 0 });
      expect(next.stderr).toMatch(/^An apply that began at .* has not ended/);
      expect(await storedRates(url)).toEqual(listRates(second()));
    },
  );

  // Windows cannot stop a process.
  it.skipIf(process.platform === "win32")(
    "one that was stopped while another one applied changes nothing when it goes on",
    { timeout: TIMEOUT_MS },
    async () => {
      const url = newPlace();
      const stopped = new ApplyProcess(url, manifest(first()));
      await stopped.signalAt(getMoment(entities), "SIGSTOP");
      // The other one would wait in vain for a lock of a process that is stopped.
      while ((await extent.isFree?.(url)) === false) {
        stopped.signal("SIGCONT");
        await setImmediate();
        stopped.signal("SIGSTOP");
      }
      const other = await new ApplyProcess(url, manifest(second())).end();
      expect(other, other.stderr).toMatchObject({ code: 0 });
      stopped.signal("SIGCONT");
      const { code, stderr } = await stopped.end();
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(OVERTAKEN) });
      expect(await storedRates(url)).toEqual(listRates(second()));
    },
  );

  it.each(seeds)("two at once never mix, run %i", { timeout: TIMEOUT_MS }, async () => {
    const url = newPlace();
    await (await openRepository(url)).close();
    const contents = [first(), second()];
    const processes = contents.map((content) => new ApplyProcess(url, manifest(content)));
    const ends = await Promise.all(processes.map((process) => process.end()));
    const winners = contents.filter((_, index) => ends[index]!.code === 0);
    for (const { code, stderr } of ends) if (code !== 0) expect(stderr).toMatch(OVERTAKEN);
    expect(winners.length, ends.map(({ stderr }) => stderr).join("\n")).toBeGreaterThan(0);
    // If both succeeded, one after the other, the content is that of the later one.
    expect(winners.map(listRates)).toContainEqual(await storedRates(url));
  });
}

type Content = ReturnType<typeof manyEntities>;

/** At which line of progress a signal is sent. */
function getMoment(seed: number): number {
  return 1 + Math.floor(seededRandom(seed)() * LAST_LINE);
}

/** A process of the built program that applies a manifest, and what it says of its progress. */
class ApplyProcess {
  readonly #child: ChildProcessByStdio<null, null, Readable>;
  readonly #closed: Promise<readonly unknown[]>;
  #onLine: (lines: number) => void = () => {};
  #lines = 0;
  #stderr = "";

  constructor(url: string, file: string) {
    this.#child = spawn(
      process.execPath,
      [PROGRAM, "limits", "apply", "--yes", "--repository", url, "-f", file],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    // A process that is stopped would outlive a test that fails.
    onTestFinished(() => void this.#child.kill("SIGKILL"));
    this.#closed = once(this.#child, "close");
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
      this.#lines = this.#stderr.match(/^Applied .*$/gm)?.length ?? 0;
      this.#onLine(this.#lines);
    });
  }

  /** Waits until it has written so many lines of progress, and sends it a signal at once. */
  async signalAt(wanted: number, signal: NodeJS.Signals): Promise<void> {
    const reached = new Promise<void>((resolve) => {
      this.#onLine = (lines) => void (lines >= wanted && resolve());
    });
    await Promise.race([reached, this.#closed]);
    expect(this.#lines, this.#stderr).toBeGreaterThanOrEqual(wanted);
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

type Rates = Readonly<Record<string, number>>;

function listRates({ entities }: Content): Rates {
  return Object.fromEntries(
    Object.entries(entities).map(([id, { resources }]) => [id, resources["gpt-4"].limits.rpm]),
  );
}

/** The rate of each entity that has a limit of its own for gpt-4. */
async function storedRates(url: string): Promise<Rates> {
  const repository = await openRepository(url, { create: false });
  const rates: Record<string, number> = {};
  let cursor: string | undefined;
  do {
    const page = await repository.listEntitiesWithCustomLimits("gpt-4", {
      limit: 1000,
      ...(cursor !== undefined && { cursor }),
    });
    for (const id of page.items) {
      const [limit] = await repository.getLimits(id, { resource: "gpt-4" });
      rates[id] = limit!.capacity;
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
  await repository.close();
  return rates;
}
