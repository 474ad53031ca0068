import { isAlias, isMap, isScalar, isSeq, type Node, type Scalar, type YAMLMap } from "yaml";

/** A value of a file in the types of JSON, and where it stands. */
export interface Converted {
  readonly value: unknown;
  /** Where it begins; for a value of a map, where its key does. */
  readonly offset: number;
  /** How many values it holds, itself included; those that aliases stand for are counted too. */
  readonly size: number;
  /** The values of a map by key, or of a list by index. */
  readonly children?: ReadonlyMap<string, Converted>;
}

/** Notes what is wrong at an offset. */
export type Report = (offset: number, message: string, suggestion: string) => void;

/**
 * Most values that aliases may stand for in one file. Ten thousand entities that share the limits
 * of two resources need a tenth of it; aliases of aliases of aliases exceed it at once.
 */
const MOST_ALIASED_VALUES = 1_000_000;

/** A manifest has seven levels. */
const MOST_LEVELS = 50;

/** Converts the nodes of a document. What is wrong is reported, and left out. */
export function convertedNode(root: Node | null, report: Report): Converted {
  return new Conversion(report).converted(root, root?.range?.[0] ?? 0, 0);
}

class Conversion {
  readonly #report: Report;
  /** What anchors stand for so far; a later anchor of the same name replaces an earlier one. */
  readonly #anchors = new Map<string, Converted>();
  #aliasedValues = 0;

  constructor(report: Report) {
    this.#report = report;
  }

  converted(node: unknown, offset: number, level: number): Converted {
    if (isAlias(node)) return { ...this.#aliased(node.source, node.range?.[0] ?? offset), offset };
    const converted = this.#unaliased(node, offset, level);
    const { anchor } = (node ?? {}) as Node & { readonly anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, converted);
    return converted;
  }

  #unaliased(node: unknown, offset: number, level: number): Converted {
    if (isScalar(node)) return { value: scalarOf(node), offset, size: 1 };
    if (!isMap(node) && !isSeq(node)) return { value: null, offset, size: 1 };
    if (level === MOST_LEVELS) {
      this.#report(
        offset,
        "The file is nested too deeply.",
        "A manifest has at most seven levels.",
      );
      return { value: null, offset, size: 1 };
    }
    if (isMap(node)) return this.#map(node, offset, level);
    const items = node.items.map((item) =>
      this.converted(item, (item as Node).range?.[0] ?? offset, level + 1),
    );
    return {
      value: items.map(({ value }) => value),
      offset,
      size: sizeOf(items),
      children: new Map(items.map((item, index) => [String(index), item])),
    };
  }

  #map(map: YAMLMap, offset: number, level: number): Converted {
    const children = new Map<string, Converted>();
    const merged: Converted[] = [];
    for (const pair of map.items) {
      const key = pair.key as Scalar.Parsed;
      const [name, begin] = [String(key.value), key.range[0]];
      if (key.anchor !== undefined)
        this.#anchors.set(key.anchor, { value: name, offset: begin, size: 1 });
      const child = this.converted(pair.value, begin, level + 1);
      if (name === "<<" && key.type === "PLAIN") merged.push(...this.#merged(child, begin));
      else if (!children.has(name)) children.set(name, child);
      else this.#report(begin, `The key '${name}' appears twice in one map.`, "Keep one of them.");
    }
    for (const source of merged)
      for (const [key, child] of source.children ?? [])
        if (!children.has(key)) children.set(key, child);
    return {
      value: Object.fromEntries([...children].map(([key, { value }]) => [key, value])),
      offset,
      size: sizeOf(children.values()),
      children,
    };
  }

  /** The maps that `<<` brings in: one, or a list, in which earlier ones win. */
  #merged(source: Converted, offset: number): readonly Converted[] {
    const sources = Array.isArray(source.value)
      ? [...(source.children ?? new Map()).values()]
      : [source];
    const isValid = sources.every(
      ({ value, children }) => children !== undefined && !Array.isArray(value),
    );
    if (isValid) return sources;
    this.#report(
      offset,
      "`<<` must be followed by a map, or by a list of maps.",
      "Write `<<: *name`, with `&name` before a map above.",
    );
    return [];
  }

  #aliased(anchor: string, offset: number): Converted {
    const target = this.#anchors.get(anchor);
    if (target === undefined) {
      this.#report(
        offset,
        `There is no anchor '&${anchor}' above.`,
        `Write \`&${anchor}\` before the value that it stands for, in the same file.`,
      );
      return NOTHING;
    }
    const before = this.#aliasedValues;
    this.#aliasedValues += target.size;
    if (this.#aliasedValues <= MOST_ALIASED_VALUES) return target;
    if (before <= MOST_ALIASED_VALUES)
      this.#report(
        offset,
        `Aliases stand for more than ${MOST_ALIASED_VALUES} values.`,
        "Write fewer aliases, or several files.",
      );
    return NOTHING;
  }
}

/** YAML 1.1, which Python reads, has `10_000` for 10000. With a leading zero it means octal. */
const GROUPED_DIGITS = /^[-+]?[1-9]\d*(?:_\d+)+$/;

function scalarOf({ value, type, tag }: Scalar): unknown {
  const isGrouped = type === "PLAIN" && tag === undefined && GROUPED_DIGITS.test(String(value));
  return isGrouped ? Number(String(value).replaceAll("_", "")) : value;
}

const NOTHING: Converted = { value: null, offset: 0, size: 1 };

function sizeOf(values: Iterable<Converted>): number {
  let size = 1;
  for (const value of values) size += value.size;
  return size;
}
