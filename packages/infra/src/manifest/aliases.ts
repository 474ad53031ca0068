import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  visit,
  type Alias,
  type Document,
  type Node,
  type Scalar,
} from "yaml";

/** Reports a problem at an offset. */
export type Report = (offset: number, message: string, suggestion: string) => void;

/** What each alias stands for. */
export type AliasTargets = ReadonlyMap<unknown, Node>;

/**
 * A manifest has seven levels, each of which counts as two for the package: the map and the pair.
 */
const MOST_LEVELS = 50;

/**
 * Finds the values of the aliases in a document. Reports aliases without an anchor, and nesting too
 * deep for the package.
 */
export function resolveAliases(document: Document, report: Report): AliasTargets {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  const follow = (node: unknown): unknown => (isAlias(node) ? anchors.get(node.source) : node);
  visit(document, {
    Alias: (_, alias, ancestors) => {
      const target = anchors.get(alias.source);
      if (target !== undefined && !ancestors.includes(target)) targets.set(alias, target);
      else
        report(
          findStart(alias),
          `There is no anchor '&${alias.source}' above.`,
          `Write \`&${alias.source}\` before the value that it stands for, in the same file.`,
        );
    },
    Pair: (_, { key, value }) => {
      if (!isScalar(key) || key.value !== "<<" || key.type !== "PLAIN") return;
      const source = follow(value);
      if (!(isSeq(source) ? source.items.map(follow) : [source]).every(isMap))
        report(
          findStart(key),
          "`<<` must be followed by a map, or by a list of maps.",
          "Write `<<: *name`, with `&name` before a map above.",
        );
    },
    Value: (_, node, { length }) => {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
      if (length <= MOST_LEVELS) return undefined;
      const advice = "A manifest has at most seven levels.";
      report(findStart(node), "The file is nested too deeply.", advice);
      return visit.SKIP;
    },
  });
  return targets;
}

/**
 * Where a value begins; for a value of a map, where its key does. What `<<` brings in has no place
 * of its own.
 */
export function findOffset(
  root: Node | null,
  path: readonly (string | number)[],
  targets: AliasTargets,
): number | undefined {
  let value: unknown = root;
  let place: unknown = root;
  for (const key of path) {
    const parent = targets.get(value) ?? value;
    if (isSeq(parent)) value = place = parent.items[Number(key)];
    else if (isMap(parent)) {
      const pair = parent.items.find((item) => (item.key as Scalar).value === String(key));
      [place, value] = [pair?.key, pair?.value];
    } else return undefined;
  }
  return place === undefined ? undefined : findStart(place);
}

function findStart(node: unknown): number {
  return (node as Node | null)?.range?.[0] ?? 0;
}
