import { isRate, type AnyLimit } from "../../../core/limit-kinds.ts";
import { splitLimitText } from "../../../core/limit-text.ts";
import { parseStoredLimit, type SupportedLimit } from "../../../core/supported-limits.ts";
import {
  getNumber,
  getString,
  type AttributeMap,
  type Value,
} from "../transport/attribute-values.ts";
import { assertSupportedKind } from "./limit-kind.ts";

/**
 * cp capacity, ra refill amount, rp refill period in seconds; whole tokens. kd kind, df what the
 * kind is defined by, op options; as in the text form of limits.
 */
type LimitField = "cp" | "ra" | "rp" | "kd" | "df" | "op";

/** The attribute of one field: prefix and suffix keep limit names apart from other attributes. */
export function configAttribute(limitName: string, field: LimitField): string {
  return `l_${limitName}_${field}`;
}

/** A rate with options: releases that do not know them must not read it as one without. */
const RATE_WITH_OPTIONS = "rate+";

/** What a limit is stored as. */
export function buildLimitAttributes(limit: AnyLimit): {
  readonly [attribute: string]: Value | undefined;
} {
  const { name, capacity } = limit;
  const { definition, options } = splitLimitText(limit);
  const refills = isRate(limit);
  const kind = options === "" ? undefined : RATE_WITH_OPTIONS;
  return {
    [configAttribute(name, "cp")]: capacity,
    ...(refills && {
      [configAttribute(name, "ra")]: limit.refillAmount,
      [configAttribute(name, "rp")]: limit.refillPeriodSeconds,
    }),
    [configAttribute(name, "kd")]: refills ? kind : limit.kind,
    [configAttribute(name, "df")]: refills ? undefined : definition,
    [configAttribute(name, "op")]: options === "" ? undefined : options,
  };
}

/** Reads one limit of an item; throws if it means more than this version knows. */
export function readLimit(item: AttributeMap, name: string): SupportedLimit {
  const text = readLimitText(item, name);
  return text === undefined ? readRate(item, name) : parseStoredLimit(text);
}

/** The text form of a limit that is more than a rate; undefined if it is one. */
export function readLimitText(item: AttributeMap, name: string): string | undefined {
  const kind = getString(item[configAttribute(name, "kd")]);
  const options = getString(item[configAttribute(name, "op")]) ?? "";
  if (kind === RATE_WITH_OPTIONS) {
    const { amount, definition } = splitLimitText(readRate(item, name));
    return `${name}:${amount}/${definition}${options}`;
  }
  const definition = getString(item[configAttribute(name, "df")]);
  if (definition === undefined) {
    assertSupportedKind(item, name, configAttribute(name, "kd"));
    return undefined;
  }
  return `${name}:${getNumber(item[configAttribute(name, "cp")]) ?? 0}/${definition}${options}`;
}

function readRate(item: AttributeMap, name: string): SupportedLimit {
  return {
    name,
    capacity: getNumber(item[configAttribute(name, "cp")]) ?? 0,
    refillAmount: getNumber(item[configAttribute(name, "ra")]) ?? 0,
    refillPeriodSeconds: getNumber(item[configAttribute(name, "rp")]) ?? 0,
  };
}
