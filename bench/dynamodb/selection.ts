import { parseArgs } from "node:util";

/** What there is to run, in this order: the cases of all contestants, then the rest. */
export const PARTS = [
  "sequential",
  "hot",
  "many",
  "children",
  "cascade",
  "refusals",
  "alone",
  "arrivals",
  "processes",
] as const;
/** Who ours can be compared with. */
const RIVALS = ["floor", "peer", "original"] as const;
const TRANSPORTS = ["sdk", "lean"] as const;

export type Part = (typeof PARTS)[number];
export type Rival = (typeof RIVALS)[number];
export type TransportName = (typeof TRANSPORTS)[number];

/** What the command line asked for; all of it by default. */
export interface Selection {
  readonly quick: boolean;
  readonly parts: ReadonlySet<Part>;
  readonly against: ReadonlySet<Rival>;
  readonly on: ReadonlySet<TransportName>;
}

/** Reads the command line, or throws a sentence that says what it may contain. */
export function readSelection(args: readonly string[]): Selection {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", default: PARTS.join() },
      against: { type: "string", default: RIVALS.join() },
      on: { type: "string", default: TRANSPORTS.join() },
    },
  });
  return {
    quick: values.quick,
    parts: parseNames("--only", values.only, PARTS),
    against: parseNames("--against", values.against, RIVALS),
    on: parseNames("--on", values.on, TRANSPORTS),
  };
}

function parseNames<Name extends string>(
  option: string,
  text: string,
  known: readonly Name[],
): ReadonlySet<Name> {
  const names = text.split(",");
  const unknown = names.filter((name) => !known.some((other) => other === name));
  if (unknown.length > 0)
    throw new Error(
      `${option} does not know "${unknown.join('", "')}". It takes a list of: ${known.join(", ")}.`,
    );
  return new Set(known.filter((name) => names.includes(name)));
}
