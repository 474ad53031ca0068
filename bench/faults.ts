/*
 * The DynamoDB backend while requests fail: `npm run bench:faults`, or with `-- --quick` to see
 * that it works. Three processes of 16 callers share a bucket of 500 tokens that earns 200 a
 * second, each behind a fault proxy, and each run has an engine of its own. What is printed are
 * counts: what a grant costs before, during and after throttling, how many calls end without an
 * answer, and how many tokens stay charged though no call got them. A goal that is missed is
 * printed as MISSED and is not a failure of the benchmark. bench/README.md says how to read it.
 */
import { availableParallelism, loadavg } from "node:os";
import {
  CALLERS,
  disturbed,
  faulty,
  shortLived,
  type FaultPlan,
  type Ledger,
  type Phase,
} from "#faults";
import { startEngine } from "./dynamodb/engine.ts";
import { printTable, whole } from "./harness.ts";

interface Goal {
  readonly what: string;
  readonly goal: string;
  readonly measured: string;
  readonly isMet: boolean;
}

interface Balance {
  readonly what: string;
  readonly faults: number;
  readonly ledger: Pick<Ledger, "stored" | "kept">;
}

type Kinds = FaultPlan["kinds"];

interface Faulty {
  readonly what: string;
  readonly share: number;
  readonly kinds: Kinds;
  readonly processes?: number;
  readonly requestTimeoutMs?: number;
  readonly hasGoal?: boolean;
}

const COSTS = [
  ["requests", "requests"],
  ["writeUnits", "write units"],
  ["readUnits", "read units"],
] as const;
const LARGEST_RATIO = 1.3;
/**
 * Warm processes on one item read next to nothing, and a ratio to nothing says nothing: up to one
 * read unit in twenty grants is fine.
 */
const FEW_READ_UNITS = 0.05;

const THROTTLED: readonly (readonly [string, Kinds])[] = [
  ["throttles without a reason", ["throttle", "throughput"]],
  ["throttles of the key's range", ["hot-key"]],
];
const FAULTY: readonly Faulty[] = [
  { what: "lost replies", share: 0.05, kinds: ["lost-reply"], hasGoal: true },
  { what: "internal errors", share: 0.05, kinds: ["internal", "late-internal"], hasGoal: true },
  { what: "lost requests", share: 0.05, kinds: ["lost-request"], hasGoal: true },
  // More processes than an item has slots for their ids.
  { what: "lost replies, six processes", share: 0.05, kinds: ["lost-reply"], processes: 6 },
  // So many that writes time out at every attempt, and are applied after their calls have ended.
  {
    what: "writes after their time-out",
    share: 0.4,
    kinds: [{ delayMs: 400 }],
    requestTimeoutMs: 250,
  },
];

const COUNT_TITLES = [
  "faults",
  "writes hit each time",
  "grants",
  "refused",
  "contended",
  "unavailable",
  "unknown",
  "ends failed",
  "splits",
  "merges",
  "p99 ms",
  "worst ms",
];

const quick = process.argv.includes("--quick");
const pace = quick
  ? { phaseSeconds: 0.3, seconds: 0.3, processes: 4, rounds: 1 }
  : { phaseSeconds: 6, seconds: 20, processes: 40, rounds: 3 };
const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 1e6));
/** Runs draw more seeds from theirs; they must not meet. */
const SEEDS_PER_RUN = 1000;

/** A process that does not answer must not keep the benchmark running. */
const WATCHDOG_MS = 600_000;

setTimeout(() => {
  console.error(`The benchmark did not end within ${WATCHDOG_MS / 1000} s.`);
  process.exit(1);
}, WATCHDOG_MS).unref();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const goals: Goal[] = [];
const balances: Balance[] = [];
let runs = 0;

console.log(
  `Node ${process.versions.node}, ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}, seed ${seed}, ` +
    `${quick ? "a quick run: it shows that the benchmark works, and its numbers say nothing" : "full run"}\n`,
);
for (const [what, kinds] of THROTTLED) await throttle(what, kinds);
await lose();
await visit();
printBalances();
printTable(
  ["what must hold", "goal", "measured", "verdict"],
  goals.map(({ what, goal, measured, isMet }) => [what, goal, measured, isMet ? "met" : "MISSED"]),
);

/** What a grant costs before, during and after throttling. */
async function throttle(what: string, kinds: Kinds): Promise<void> {
  const { ledger, ...phases } = await onFreshEngine(async (options) =>
    disturbed({ ...options, seconds: pace.phaseSeconds, plan: buildPlan(0.05, kinds) }),
  );
  const { before, during, after } = phases;
  printTable(
    [`5 % ${what}`, ...COSTS.map(([, name]) => `${name}/grant`), ...COUNT_TITLES],
    Object.entries(phases).map(([name, phase]) =>
      [name].concat(
        COSTS.map(([count]) => perGrant(phase, count).toFixed(2)),
        listCounts(phase),
      ),
    ),
  );
  balances.push({ what, faults: during.faults, ledger });
  for (const [count, name] of COSTS) {
    const [earlier, later] = [perGrant(before, count), perGrant(after, count)];
    const isFew = count === "readUnits" && later <= FEW_READ_UNITS;
    goals.push({
      what: `${what}: ${name} per grant, after : before`,
      goal: `≤ ${LARGEST_RATIO}`,
      measured:
        isFew || earlier === 0
          ? `${later.toFixed(2)} : ${earlier.toFixed(2)}`
          : (later / earlier).toFixed(2),
      isMet: isFew || later <= LARGEST_RATIO * earlier,
    });
  }
  noneBut(
    `${what}: calls that gave up`,
    countGivenUp(during) + countGivenUp(after),
    during.hopeless * CALLERS,
  );
}

/** How many calls end without an answer. */
async function lose(): Promise<void> {
  const rows: (readonly string[])[] = [];
  for (const { what, share, kinds, hasGoal, ...rest } of FAULTY) {
    const { phase, ledger } = await onFreshEngine(async (options) =>
      faulty({ ...options, ...rest, seconds: pace.seconds, plan: buildPlan(share, kinds) }),
    );
    rows.push([`${whole(share * 100)} % ${what}`, ...listCounts(phase)]);
    balances.push({ what, faults: phase.faults, ledger });
    if (hasGoal)
      noneBut(`${what}: calls of unknown outcome`, phase.unknown, phase.hopeless * CALLERS);
  }
  printTable(["a quarter of the grants roll back", ...COUNT_TITLES], rows);
}

/** Processes that make a few calls and go. */
async function visit(): Promise<void> {
  const { processes, rounds } = pace;
  const what = `lost replies of ${processes} processes of five calls`;
  const phases: Phase[] = [];
  let [stored, kept] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const { phase, ledger } = await onFreshEngine(async (options) =>
      shortLived({ ...options, processes, calls: 5, plan: buildPlan(0.1, ["lost-reply"]) }),
    );
    phases.push(phase);
    stored += ledger.stored;
    kept += ledger.kept;
  }
  printTable(
    [`10 % ${what}`, ...COUNT_TITLES],
    phases.map((phase, round) => [`round ${round + 1}`, ...listCounts(phase)]),
  );
  const sum = (getCount: (phase: Phase) => number): number =>
    phases.reduce((total, phase) => total + getCount(phase), 0);
  balances.push({ what, faults: sum(({ faults }) => faults), ledger: { stored, kept } });
  noneBut(
    `${what}: calls without an answer`,
    sum(countGivenUp),
    sum(({ hopeless }) => hopeless),
  );
}

/** Tokens that stay charged though no call got them. */
function printBalances(): void {
  printTable(
    ["tokens", "faults", "stored", "kept by callers", "stuck", "stuck per 1000 faults", "minted"],
    balances.map(({ what, faults, ledger: { stored, kept } }) => [
      what,
      whole(faults),
      whole(stored),
      whole(kept),
      whole(Math.max(0, stored - kept)),
      faults === 0 ? "–" : ((Math.max(0, stored - kept) * 1000) / faults).toFixed(1),
      whole(Math.max(0, kept - stored)),
    ]),
  );
  const minted = balances.reduce(
    (sum, { ledger: { stored, kept } }) => sum + Math.max(0, kept - stored),
    0,
  );
  noneBut("tokens that callers got without a charge", minted, 0);
}

async function onFreshEngine<Result>(
  run: (options: { readonly engineUrl: string; readonly seed: number }) => Promise<Result>,
): Promise<Result> {
  const engine = await startEngine();
  runs += 1;
  try {
    return await run({ engineUrl: engine.endpointUrl, seed: seed + runs * SEEDS_PER_RUN });
  } finally {
    await engine.stop();
  }
}

function buildPlan(share: number, kinds: Kinds): FaultPlan {
  return { share, kinds, sparesLastAttempt: false };
}

/** Nothing of it may happen, but for calls whose write was hit at every attempt. */
function noneBut(what: string, count: number, excused: number): void {
  goals.push({
    what,
    goal: excused === 0 ? "0" : `0, or up to ${excused} hit each time`,
    measured: whole(count),
    isMet: count <= excused,
  });
}

function countGivenUp({ contended, unavailable, unknown }: Phase): number {
  return contended + unavailable + unknown;
}

function perGrant(phase: Phase, count: (typeof COSTS)[number][0]): number {
  return phase[count] / phase.grants;
}

function listCounts(phase: Phase): readonly string[] {
  const sorted = phase.latenciesMs.toSorted((left, right) => left - right);
  return [
    phase.faults,
    phase.hopeless,
    phase.grants,
    phase.refusals,
    phase.contended,
    phase.unavailable,
    phase.unknown,
    phase.failedEnds,
    phase.splits,
    phase.merges,
    sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    sorted.at(-1) ?? 0,
  ].map(whole);
}
