import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Limit, RateLimiter, type Clock, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { describe, expect, it } from "vitest";
import { tour } from "./tour.ts";

const RESOURCE = "gpt-4";

/** A line of the tour, and the state of the repository right after it was printed. */
interface Moment {
  readonly line: string;
  readonly nowMs: number;
  readonly balances: readonly string[];
  /** How long a call of one request would have to wait. */
  readonly waitSeconds: { readonly web: number; readonly batch: number };
}

describe("the quickstart", () => {
  it("shows a grant, debt, a refusal, a wait and a parent's limit as they are stored", async () => {
    const { repository, moments, lines } = await recordTour();
    expect(balanceLines(moments)).toHaveLength(6);
    for (const { line, balances } of balanceLines(moments))
      expect(balances).toContain(line.replace("(in debt)", "").trim());

    const refused = moments.filter(({ line }) => line.includes("retry in"));
    expect(refused.map(({ line }) => line)).toEqual([
      `  retry in ${refused.at(0)?.waitSeconds.web} s (if nothing else is taken meanwhile)`,
      `  retry in ${refused.at(1)?.waitSeconds.batch} s (if nothing else is taken meanwhile)`,
    ]);
    expect(lines).toContain("  refused by tpm of key-web (the system default)");
    expect(lines).toContain("  refused by rpm of project-apollo (its own limit on gpt-4)");

    const granted = moments.findIndex(({ line }) => line.includes(" and is granted "));
    const waitedMs = Number(moments.at(granted)?.nowMs) - Number(moments.at(granted - 1)?.nowMs);
    expect(waitedMs).toBe(Number(refused.at(0)?.waitSeconds.web) * 1000);
    expect(lines.at(granted)).toContain(`after ${waitedMs} ms`);

    for (const entityId of ["key-web", "key-batch", "project-apollo"]) {
      const { items } = await repository.getUsageSnapshots({
        entityId,
        resource: RESOURCE,
        window: "monthly",
      });
      expect(items).toHaveLength(1);
      for (const { requests, counters } of items) {
        const amounts = Object.entries(counters).map(([name, amount]) => `${amount} ${name}`);
        expect(lines).toContain(
          `  ${entityId.padEnd(16)} ${requests} requests   ${amounts.join(", ")}`,
        );
      }
    }
  });

  it("prints what the repository holds when other limits are stored", async () => {
    const { repository, moments, lines } = await recordTour((limit) => ({
      ...limit,
      capacity: limit.capacity + 7,
    }));
    const { limits } = await repository.getSystemDefaults();
    expect(lines.join("\n")).toContain(limits.map((limit) => Limit.format(limit)).join("   "));
    expect(lines.join("\n")).toContain("tpm 5507 of 6007");
    for (const { line, balances } of balanceLines(moments))
      expect(balances).toContain(line.replace("(in debt)", "").trim());
  });

  it("runs from the build, in real time", async () => {
    const main = fileURLToPath(new URL("./dist/main.js", import.meta.url));
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [main]);
    expect(stderr).toBe("");
    const titles = stdout.split("\n").filter((line) => /^\d\. /.test(line));
    expect(titles.map((line) => line[0])).toEqual(["1", "2", "3", "4", "5"]);
    expect(stdout).toMatch(/^ {2}which has tpm -\d+ of 6000: /m);
    expect(stdout).toMatch(/^ {2}refused by rpm of project-apollo /m);
  });
});

/**
 * Runs the tour on a clock that sleeps in no time, and reads the repository itself after each line.
 */
async function recordTour(
  change: (limit: Limit) => Limit = (limit) => limit,
): Promise<{ repository: Repository; moments: readonly Moment[]; lines: readonly string[] }> {
  const clock = jumpingClock();
  const repository = new MemoryRepository({ clock });
  const moments: Moment[] = [];
  await tour(withChangedLimits(repository, change), async (line) => {
    moments.push({ line, nowMs: clock.now(), ...(await lookAt(repository)) });
  });
  return { repository, moments, lines: moments.map(({ line }) => line) };
}

async function lookAt(repository: Repository): Promise<Pick<Moment, "balances" | "waitSeconds">> {
  const limiter = new RateLimiter({ repository });
  const buckets = await repository.getBuckets("key-web");
  const wait = (entityId: string): Promise<number> =>
    limiter.timeUntilAvailable(entityId, RESOURCE, { rpm: 1 });
  return {
    balances: buckets.map(
      ({ limitName, available, capacityMilli }) =>
        `${limitName} ${available} of ${capacityMilli / 1000}`,
    ),
    waitSeconds: { web: await wait("key-web"), batch: await wait("key-batch") },
  };
}

function balanceLines(moments: readonly Moment[]): readonly Moment[] {
  return moments.filter(({ line }) => /^ {4}\w+ -?\d+ of/.test(line));
}

function jumpingClock(): Clock {
  let nowMs = Date.UTC(2026, 0, 4, 12);
  return {
    now: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
  };
}

/** The repository, except that it stores changed system defaults. */
function withChangedLimits(repository: Repository, change: (limit: Limit) => Limit): Repository {
  return new Proxy(repository, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== "function") return member;
      if (property === "setSystemDefaults")
        return (limits: readonly Limit[]) => target.setSystemDefaults(limits.map(change));
      return (...values: unknown[]): unknown => Reflect.apply(member, target, values);
    },
  });
}
