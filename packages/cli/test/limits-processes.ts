import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { openRepository } from "zae-limiter/open";
import { seededRandom } from "zae-limiter/testing";
import { eachOf, seedsFromEnvironment } from "../../limiter/test/support/seeded/seeds.ts";
import { manifestFiles, manyEntities } from "./manifest-file.ts";

const PROGRAM = fileURLToPath(new URL("../bin/zae-limiter.js", import.meta.url));

const SEEDS = seedsFromEnvironment({ usual: 1, thorough: 10 });

/** How many lines of progress a long apply writes. */
const LINES = 10;

const OVERTAKEN =
  /error: Another apply to namespace default began meanwhile, so this one has stopped/;

/**
 * What holds for processes that apply manifests to one place, which is new for each test. The
 * moments are seeded, and told by the progress that a process shows.
 */
export function applyingProcesses(
  newPlace: () => string,
  { entities }: { readonly entities: number },
): void {
  const manifest = manifestFiles();
  // The second manifest leaves out a part of the first one, and adds some.
  const first = (): object => manyEntities(entities, { rpm: 1 });
  const second = (): object => manyEntities(entities, { rpm: 2, from: Math.floor(entities / 4) });

  it.each(eachOf(SEEDS))(
    "one that is killed in the middle is completed by the next, seed %i",
    async (seed) => {
      const random = seededRandom(seed);
      const url = newPlace();
      // The second one is killed too: it deletes what only the first one has.
      for (const content of [first(), second()]) {
        const file = manifest(content);
        const killed = new ApplyProcess(url, file);
        await killed.signalAt(1 + Math.floor(random() * (LINES - 2)), "SIGKILL");
        expect(await killed.end()).toMatchObject({ signal: "SIGKILL" });
        expect(await storedRates(url)).not.toEqual(ratesOf(content));
        const next = await new ApplyProcess(url, file).end();
        expect(next, next.stderr).toMatchObject({ code: 0 });
        expect(next.stderr).toMatch(/^An apply that began at .* has not ended/);
        expect(await storedRates(url)).toEqual(ratesOf(content));
      }
    },
  );

  it.each(eachOf(SEEDS))(
    "one that was stopped while another one applied changes nothing when it goes on, seed %i",
    async (seed) => {
      const url = newPlace();
      const stopped = new ApplyProcess(url, manifest(first()));
      const random = seededRandom(seed);
      await stopped.signalAt(1 + Math.floor(random() * (LINES - 2)), "SIGSTOP");
      const other = await new ApplyProcess(url, manifest(second())).end();
      expect(other, other.stderr).toMatchObject({ code: 0 });
      stopped.signal("SIGCONT");
      const { code, stderr } = await stopped.end();
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(OVERTAKEN) });
      expect(await storedRates(url)).toEqual(ratesOf(second()));
    },
  );

  it.each(eachOf(SEEDS))("two at once never mix, seed %i", async () => {
    const url = newPlace();
    await (await openRepository(url)).close();
    const contents = [first(), second()];
    const processes = contents.map((content) => new ApplyProcess(url, manifest(content)));
    const ends = await Promise.all(processes.map((process) => process.end()));
    const winners = contents.filter((_, index) => ends[index]!.code === 0);
    for (const { code, stderr } of ends) if (code !== 0) expect(stderr).toMatch(OVERTAKEN);
    expect(winners.length, ends.map(({ stderr }) => stderr).join("\n")).toBeGreaterThan(0);
    // If both succeeded, one after the other, the content is that of the later one.
    expect(winners.map(ratesOf)).toContainEqual(await storedRates(url));
  });
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

function ratesOf(content: object): Rates {
  const { entities } = content as ReturnType<typeof manyEntities>;
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
      rates[id] = limit!.refillAmount;
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
  await repository.close();
  return rates;
}
