/*
 * What every benchmark here shares: contestants take turns, round by round, in one process, so that
 * a slow moment of the machine hits all of them; what is printed are medians. A ratio is the median
 * of the ratios within each round, for the same reason.
 */

/** A contestant that does the same work as the others. */
export interface Contestant {
  readonly name: string;
  /** Does the work this many times; a contestant in another process returns its cost there. */
  run(operations: number): Promise<Cost | void>;
}

/** Wall clock and processor time. */
export interface Cost {
  readonly wallNs: number;
  readonly cpuNs: number;
}

/** What a contestant cost, one number per round, each for one operation. */
export interface Measured {
  readonly name: string;
  readonly wallNs: readonly number[];
  /** All threads of the process, so the garbage collector's helpers count too. */
  readonly cpuNs: readonly number[];
}

/** How long a race goes on. */
export interface Pace {
  readonly rounds: number;
  /** How long each contestant runs in each round. */
  readonly turnMs: number;
  /**
   * How many operations each contestant does in each round, whatever time they take: for those in
   * other processes, whose time says little about their work. @default what fills `turnMs`
   */
  readonly operations?: number;
  /** How many operations warm a contestant up at least. @default 1000 */
  readonly warmUp?: number;
  /**
   * For how long a contestant is warmed up at least, for those that do few operations in a second.
   * @default 0
   */
  readonly warmUpMs?: number;
}

/** One line of the verdict: a ratio and what it should be. */
export interface Verdict {
  readonly what: string;
  readonly ratio: number;
  /** Absent on a line that is only there to be seen. */
  readonly goal: { readonly atLeast: number } | { readonly atMost: number } | undefined;
  /** Ours, then theirs. */
  readonly cpuNs: readonly [number, number];
}

/**
 * Lets contestants take turns. The order rotates, so that none always runs behind the same
 * neighbour.
 */
export async function interleave(
  contestants: readonly Contestant[],
  pace: Pace,
): Promise<readonly Measured[]> {
  const entries = [];
  for (const contestant of contestants) {
    entries.push({
      contestant,
      operations: await calibrate(contestant, pace),
      wallNs: [] as number[],
      cpuNs: [] as number[],
    });
  }
  for (let round = 0; round < pace.rounds; round += 1) {
    for (let turn = 0; turn < entries.length; turn += 1) {
      const { contestant, operations, wallNs, cpuNs } = entries[(round + turn) % entries.length]!;
      const cost = await measureTime(() => contestant.run(operations));
      wallNs.push(cost.wallNs / operations);
      cpuNs.push(cost.cpuNs / operations);
    }
  }
  return entries.map(({ contestant: { name }, wallNs, cpuNs }) => ({ name, wallNs, cpuNs }));
}

/** Wall clock and processor time of one piece of work. */
export async function measureTime(work: () => Promise<Cost | void>): Promise<Cost> {
  const cpu = process.cpuUsage();
  const start = process.hrtime.bigint();
  const told = await work();
  if (told !== undefined) return told;
  const wallNs = Number(process.hrtime.bigint() - start);
  const { user, system } = process.cpuUsage(cpu);
  return { wallNs, cpuNs: (user + system) * 1000 };
}

/** How many times as fast the first is as the second. */
export function speedup(ours: Measured, theirs: Measured): number {
  return median(ours.wallNs.map((wallNs, round) => theirs.wallNs[round]! / wallNs));
}

/** How many times the CPU of the second the first needs. */
export function cpuRatio(first: Measured, second: Measured): number {
  return median(first.cpuNs.map((cpuNs, round) => cpuNs / second.cpuNs[round]!));
}

/** The middle value; the mean of the two middle ones when the count is even. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Prints what each contestant cost. */
export function printCosts(title: string, all: readonly Measured[]): void {
  printTable(
    [title, "ns/operation", "CPU ns/operation", "operations/s"],
    all.map(({ name, wallNs, cpuNs }) => [
      name,
      whole(median(wallNs)),
      whole(median(cpuNs)),
      whole(1e9 / median(wallNs)),
    ]),
  );
}

/** Prints goals, measured ratios and whether they are met. */
export function printVerdicts(title: string, verdicts: readonly Verdict[]): void {
  printTable(
    [title, "goal", "measured", "verdict", "CPU ns/operation, ours : theirs"],
    verdicts.map(({ what, ratio, goal, cpuNs: [ours, theirs] }) => {
      return [what, ...judge(ratio, goal), `${whole(ours)} : ${whole(theirs)}`];
    }),
  );
}

/** Prints rows in aligned columns: the first to the left, the others to the right. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]!.length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join("  ");
  console.log(
    [line(header), widths.map((width) => "─".repeat(width)).join("  "), ...rows.map(line), ""].join(
      "\n",
    ),
  );
}

/** A whole number with its thousands apart. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString("en-GB");
}

/** The goal, the measured ratio and the verdict, as cells of a table. */
export function judge(ratio: number, goal: Verdict["goal"]): readonly [string, string, string] {
  const measured = ratio.toFixed(2);
  if (goal === undefined) return ["none", measured, "–"];
  if ("atLeast" in goal)
    return [`≥ ${goal.atLeast}`, measured, ratio >= goal.atLeast ? "met" : "MISSED"];
  return [`≤ ${goal.atMost}`, measured, ratio <= goal.atMost ? "met" : "MISSED"];
}

/** Warms a contestant up and finds how many operations fill one turn. */
async function calibrate(
  contestant: Contestant,
  { turnMs, operations: fixed, warmUp = 1000, warmUpMs = 0 }: Pace,
): Promise<number> {
  if (fixed !== undefined) {
    await contestant.run(warmUp);
    return fixed;
  }
  let operations = warmUp;
  let warmNs = 0;
  // The bound is far above what any machine reaches in one turn; it ends the search if a contestant
  // does nothing.
  while (operations < 1e9) {
    const { wallNs } = await measureTime(() => contestant.run(operations));
    warmNs += wallNs;
    const isLongEnough = wallNs >= turnMs * 5e5;
    if (isLongEnough && warmNs >= warmUpMs * 1e6)
      return Math.max(1, Math.round((operations * turnMs * 1e6) / wallNs));
    if (!isLongEnough) operations *= 2;
  }
  return operations;
}
