import { judge, median, printTable } from "../harness.ts";
import type { Case } from "./cases.ts";
import { perCpuSecond, type Outcome } from "./comparison.ts";
import type { ContestantId } from "./contestants/contestant.ts";
import type { TransportName } from "./selection.ts";

/** The cost of each contestant in the cases that were run. */
export type Results = Readonly<Partial<Record<Case["id"], ReadonlyMap<ContestantId, Outcome>>>>;

/** Acquires per CPU second of the client, ours : theirs. */
interface RatioGoal {
  readonly what: string;
  readonly race: Case["id"];
  readonly transport: TransportName;
  readonly theirs: "original" | "peer-union" | "floor" | "unshared";
  /** Absent on a line that is only there to be seen. */
  readonly atLeast: number | undefined;
}

/** Requests of ours for one acquire. */
interface CountGoal {
  readonly what: string;
  readonly race: Case["id"];
  readonly atMost: number;
}

type Row = readonly string[];

const LABELS: Readonly<Record<TransportName, string>> = { sdk: "SDK", lean: "lean" };

const RATIOS: readonly RatioGoal[] = [
  ...onBoth("hot entity : the original", { race: "hot", theirs: "original", lean: 20, sdk: 20 }),
  ...onBoth("hot entity : the peer's union", {
    race: "hot",
    theirs: "peer-union",
    lean: 20,
    sdk: 20,
  }),
  ...onBoth("children of one parent : the original", {
    race: "children",
    theirs: "original",
    lean: 22,
    sdk: 3,
  }),
  ...onBoth("many entities : the original", {
    race: "many",
    theirs: "original",
    lean: 15,
    sdk: 6,
  }),
  ...onBoth("many entities : the floor", { race: "many", theirs: "floor", lean: 1.5 }),
  ...onBoth("refusals : the original", { race: "refusals", theirs: "original", lean: 20, sdk: 20 }),
  ...onBoth("sequential : the floor", {
    race: "sequential",
    theirs: "floor",
    lean: 0.8,
    sdk: 0.65,
  }),
  ...onBoth("cascade : the floor", { race: "cascade", theirs: "floor" }),
  ...onBoth("sequential : sharing off", { race: "sequential", theirs: "unshared" }),
  ...onBoth("many entities : sharing off", { race: "many", theirs: "unshared" }),
  ...onBoth("children of one parent : sharing off", { race: "children", theirs: "unshared" }),
  ...onBoth("cascade : sharing off", { race: "cascade", theirs: "unshared" }),
];

const COUNTS: readonly CountGoal[] = [
  { what: "many entities: requests an acquire", race: "many", atMost: 0.1 },
  { what: "cascade: requests an acquire", race: "cascade", atMost: 1 },
];

/** Prints every goal of the cases that were run: met, missed, or could not be measured. */
export function printGoals(results: Results, on: ReadonlySet<TransportName>): void {
  const transports = (["lean", "sdk"] as const).filter((transport) => on.has(transport));
  const ratios = RATIOS.filter(
    ({ race, transport }) => results[race] !== undefined && on.has(transport),
  );
  if (ratios.length === 0) return;
  printTable(
    [
      "acquires per CPU second of the client, ours : theirs",
      "goal",
      "measured",
      "verdict",
      "per CPU second",
    ],
    ratios.map((goal) => ratioRow(goal, results)),
  );
  const counts = transports.flatMap((transport) =>
    [
      ...COUNTS.map((goal) => requestsRow(goal, results, transport)),
      writeUnitsRow(results, transport),
    ].filter((row) => row !== undefined),
  );
  if (counts.length > 0)
    printTable(["counts, from the bills", "goal", "measured", "verdict"], counts);
}

function ratioRow({ what, race, transport, theirs, atLeast }: RatioGoal, results: Results): Row {
  const name = `${what}, ${LABELS[transport]}`;
  const goal = atLeast === undefined ? undefined : { atLeast };
  const mine = results[race]?.get(`ours-${transport}`)?.measured;
  const other = results[race]?.get(rivalOn(transport, theirs))?.measured;
  if (mine === undefined || other === undefined)
    return [name, judge(0, goal)[0], "–", "NOT MEASURED", "–"];
  const ratio = median(mine.cpuNs.map((cpuNs, round) => other.cpuNs[round]! / cpuNs));
  return [name, ...judge(ratio, goal), `${perCpuSecond(mine)} : ${perCpuSecond(other)}`];
}

function requestsRow(
  { what, race, atMost }: CountGoal,
  results: Results,
  transport: TransportName,
): Row | undefined {
  const outcome = results[race]?.get(`ours-${transport}`);
  if (outcome === undefined) return undefined;
  const { bill, billed } = outcome;
  return [`${what}, ${LABELS[transport]}`, ...judge(bill.requests / billed, { atMost })];
}

/** One unit for each write, and for one that its condition refused, whatever it was sent in. */
function writeUnitsRow(results: Results, transport: TransportName): Row | undefined {
  const bills = Object.values(results).flatMap(
    (outcomes) => outcomes.get(`ours-${transport}`)?.bill ?? [],
  );
  const sent = bills.reduce(
    (sum, { statistics }) => sum + statistics!.writes + statistics!.failedConditions,
    0,
  );
  if (sent === 0) return undefined;
  const units = bills.reduce((sum, { writeUnits }) => sum + writeUnits, 0);
  return [
    `all of these cases: write units a write, ${LABELS[transport]}`,
    ...judge(units / sent, { atMost: 1 }),
  ];
}

/** The floor, and ours with sharing off, are those on the same transport. */
function rivalOn(transport: TransportName, theirs: RatioGoal["theirs"]): ContestantId {
  if (theirs === "floor") return `floor-${transport}`;
  if (theirs === "unshared") return `ours-${transport}-unshared`;
  return theirs;
}

/** A goal for each transport. */
function onBoth(
  what: string,
  {
    race,
    theirs,
    lean,
    sdk,
  }: Pick<RatioGoal, "race" | "theirs"> & { readonly lean?: number; readonly sdk?: number },
): readonly RatioGoal[] {
  return [
    { what, race, theirs, transport: "lean", atLeast: lean },
    { what, race, theirs, transport: "sdk", atLeast: sdk },
  ];
}
