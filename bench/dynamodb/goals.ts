import { median, printTable, whole, type Measured } from "../harness.ts";
import type { Case } from "./cases.ts";
import type { ContestantId } from "./contestants/contestant.ts";

/** What everybody cost in a case. */
export type Results = Readonly<Partial<Record<Case["id"], ReadonlyMap<ContestantId, Measured>>>>;

interface Goal {
  readonly what: string;
  readonly race: Case["id"];
  readonly ours: ContestantId;
  readonly theirs: ContestantId;
  /** Acquires per CPU second of the client, ours : theirs. */
  readonly atLeast: number;
}

const GOALS: readonly Goal[] = [
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
    lean: 10,
    sdk: 3,
  }),
  ...onBoth("many entities : the original", {
    race: "many",
    theirs: "original",
    lean: 5,
    sdk: 1.5,
  }),
  ...onBoth("refusals : the original", { race: "refusals", theirs: "original", lean: 10, sdk: 10 }),
  {
    what: "sequential : the floor, lean",
    race: "sequential",
    ours: "ours-lean",
    theirs: "floor-lean",
    atLeast: 0.8,
  },
  {
    what: "sequential : the floor, SDK",
    race: "sequential",
    ours: "ours-sdk",
    theirs: "floor-sdk",
    atLeast: 0.8,
  },
];

/** Prints every goal, and whether it is met, missed, or could not be measured. */
export function printGoals(results: Results): void {
  printTable(
    [
      "acquires per CPU second of the client, ours : theirs",
      "goal",
      "measured",
      "verdict",
      "per CPU second",
    ],
    GOALS.map(({ what, race, ours, theirs, atLeast }) => {
      const mine = results[race]?.get(ours);
      const other = results[race]?.get(theirs);
      if (mine === undefined || other === undefined)
        return [what, `≥ ${atLeast}`, "–", "NOT MEASURED", "–"];
      const ratio = median(mine.cpuNs.map((cpuNs, round) => other.cpuNs[round]! / cpuNs));
      return [
        what,
        `≥ ${atLeast}`,
        ratio.toFixed(2),
        ratio >= atLeast ? "met" : "MISSED",
        `${perCpuSecond(mine)} : ${perCpuSecond(other)}`,
      ];
    }),
  );
}

/** How many operations one second of the processor is enough for. */
export function perCpuSecond({ cpuNs }: Measured): string {
  return whole(1e9 / median(cpuNs));
}

function onBoth(
  what: string,
  {
    race,
    theirs,
    lean,
    sdk,
  }: Pick<Goal, "race" | "theirs"> & { readonly lean: number; readonly sdk: number },
): readonly Goal[] {
  return [
    { what: `${what}, lean`, race, ours: "ours-lean", theirs, atLeast: lean },
    { what: `${what}, SDK`, race, ours: "ours-sdk", theirs, atLeast: sdk },
  ];
}
