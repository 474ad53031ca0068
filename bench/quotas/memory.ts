import {
  cpuRatio,
  interleave,
  median,
  printCosts,
  printTable,
  whole,
  type Measured,
  type Pace,
  type Verdict,
} from "../harness.ts";
import { contestantsOver, heapPerKey } from "../memory-processes.ts";
import { buildEarlier, QUOTA_CONTESTANTS } from "./memory-contestants.ts";

/** How long it is measured. */
export interface MemoryPace extends Pace {
  readonly manyKeys: number;
  /**
   * How often each contestant gets a fresh process: how a process compiles the same code differs by
   * more than what is looked for.
   */
  readonly processes: number;
}

type Name = keyof typeof QUOTA_CONTESTANTS;

/** Acquires per CPU second of the first by those of the second. */
const RATIOS: readonly (readonly [Name, Name, number | undefined])[] = [
  ["rates, one limit", "rates before, one limit", 0.97],
  ["rates, two limits", "rates before, two limits", 0.97],
  ["quota, one limit", "rates, one limit", 0.8],
  ["quotas, two limits", "rates, two limits", 0.8],
  ["session, one limit", "rates, one limit", undefined],
];

/** Bytes of a key of the first by those of the second. */
const HEAPS: readonly (readonly [Name, Name, number | undefined])[] = [
  ["rates, one limit", "rates before, one limit", 1],
  ["rates, two limits", "rates before, two limits", 1],
  ["quota, one limit", "rates, one limit", undefined],
];

/** Measures rates before and with quotas, and quotas. */
export async function measureMemory(pace: MemoryPace): Promise<readonly Verdict[]> {
  const names = findNames();
  const verdicts: Verdict[] = [];
  for (const keys of [1, pace.manyKeys]) {
    const title = keys === 1 ? "1 key" : `${whole(keys)} keys`;
    const races: Race[] = [];
    for (let process = 0; process < pace.processes; process += 1)
      // Who comes first makes a difference.
      races.push(await race(process % 2 === 0 ? names : names.toReversed(), keys, pace));
    printCosts(
      title,
      names.map((name) => pool(races, name)),
    );
    verdicts.push(...toVerdicts(title, races));
  }
  return [...verdicts, ...measureHeaps(names, pace.manyKeys)];
}

/** Who takes part; the earlier build is made here, and not while a process is measured. */
function findNames(): readonly Name[] {
  const names = Object.keys(QUOTA_CONTESTANTS) as Name[];
  try {
    buildEarlier();
    return names;
  } catch {
    console.log("!!! SKIPPED !!! rates before: the earlier commit could not be built\n");
    return names.filter((name) => !name.includes("before"));
  }
}

type Race = ReadonlyMap<string, Measured>;

/** Every contestant in a fresh process. */
async function race(names: readonly Name[], keys: number, pace: Pace): Promise<Race> {
  const contestants = contestantsOver(names, keys);
  const measured = await interleave(contestants, pace);
  for (const contestant of contestants) contestant.end();
  return new Map(measured.map((one) => [one.name, one]));
}

function toVerdicts(title: string, races: readonly Race[]): readonly Verdict[] {
  return RATIOS.filter(([, theirs]) => races[0]!.has(theirs)).map(([ours, theirs, atLeast]) => {
    const ratios = races.map((all) => cpuRatio(all.get(theirs)!, all.get(ours)!));
    const [lowest, highest] = [Math.min(...ratios), Math.max(...ratios)];
    return {
      what: `CPU, ${title}: ${ours} : ${theirs} (${lowest.toFixed(2)} to ${highest.toFixed(2)})`,
      ratio: median(ratios),
      goal: atLeast === undefined ? undefined : { atLeast },
      cpuNs: [median(pool(races, ours).cpuNs), median(pool(races, theirs).cpuNs)],
    };
  });
}

/** What one contestant cost in all of its processes. */
function pool(races: readonly Race[], name: string): Measured {
  const all = races.map((one) => one.get(name)!);
  return {
    name,
    wallNs: all.flatMap(({ wallNs }) => wallNs),
    cpuNs: all.flatMap(({ cpuNs }) => cpuNs),
  };
}

function measureHeaps(names: readonly Name[], keys: number): readonly Verdict[] {
  const heaps = new Map(names.map((name) => [name, heapPerKey(name, keys)]));
  printTable(
    [`Heap, ${whole(keys)} keys`, "bytes/key"],
    [...heaps].map(([name, { bytes }]) => [name, whole(bytes)]),
  );
  return HEAPS.filter(([, other]) => heaps.has(other)).map(([name, other, atMost]) => {
    const [ours, theirs] = [heaps.get(name)!, heaps.get(other)!];
    return {
      what: `heap per key, ${name} : ${other}`,
      // Of the hundreds of bytes, fractions are noise.
      ratio: Math.round((ours.bytes / theirs.bytes) * 100) / 100,
      goal: atMost === undefined ? undefined : { atMost },
      cpuNs: [ours.cpuNs, theirs.cpuNs],
    };
  });
}
