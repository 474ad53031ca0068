/*
 * What a conditional update does to an item, by the rules of DynamoDB's expressions as far as
 * buckets use them. It shares nothing with the code that makes expressions, and is small enough to
 * be checked by reading; the connected tests compare the same writes on an engine.
 */
import type {
  AttributeMap,
  AttributeValue,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";

/** The parts of an UpdateItem or PutItem call that expressions use. */
export interface ExpressionInput {
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, AttributeValue>>;
}

/** The item after the update; undefined when its condition fails. */
export function update(item: AttributeMap, input: ExpressionInput): AttributeMap | undefined {
  if (input.ConditionExpression !== undefined && !new Condition(item, input).holds())
    return undefined;
  const next: Record<string, AttributeValue> = { ...item };
  for (const [, keyword = "", body = ""] of (input.UpdateExpression ?? "").matchAll(
    /\b(SET|ADD|REMOVE) (.*?)(?= (?:SET|ADD|REMOVE) |$)/g,
  ))
    for (const part of body.split(",")) change(next, keyword, part, input);
  return next;
}

function change(
  item: Record<string, AttributeValue>,
  keyword: string,
  part: string,
  input: ExpressionInput,
): void {
  const [name = "", value = ""] = part.split(keyword === "SET" ? "=" : " ");
  const attribute = getName(name, input);
  if (keyword === "REMOVE") delete item[attribute];
  else if (keyword === "SET") item[attribute] = getValue(value, input);
  else
    item[attribute] = {
      N: String(numberIn(item[attribute] ?? { N: "0" }) + numberIn(getValue(value, input))),
    };
}

/** Reads a condition from left to right: OR of AND of comparisons, functions and brackets. */
class Condition {
  readonly #item: AttributeMap;
  readonly #input: ExpressionInput;
  readonly #words: string[];

  constructor(item: AttributeMap, input: ExpressionInput) {
    this.#item = item;
    this.#input = input;
    this.#words = input.ConditionExpression!.match(/[#:]?[\w.]+|[<>]=|<>|[=<>(),]/g) ?? [];
  }

  holds(): boolean {
    const result = this.#any();
    if (this.#words.length > 0)
      throw new Error(
        `Not understood: ${this.#words.join(" ")} of ${this.#input.ConditionExpression}`,
      );
    return result;
  }

  #any(): boolean {
    let result = this.#all();
    while (this.#skip("OR")) result = this.#all() || result;
    return result;
  }

  #all(): boolean {
    let result = this.#one();
    while (this.#skip("AND")) result = this.#one() && result;
    return result;
  }

  #one(): boolean {
    if (this.#skip("(")) {
      const result = this.#any();
      this.#expect(")");
      return result;
    }
    const word = this.#words.shift()!;
    if (this.#skip("(")) return this.#function(word);
    const left = this.#item[getName(word, this.#input)];
    const operator = this.#words.shift()!;
    if (operator !== "BETWEEN") return isTrue(left, operator, this.#value());
    const least = this.#value();
    this.#expect("AND");
    const most = this.#value();
    return isTrue(left, ">=", least) && isTrue(left, "<=", most);
  }

  #function(name: string): boolean {
    const held = this.#item[getName(this.#words.shift()!, this.#input)];
    const prefix = this.#skip(",") ? this.#value() : undefined;
    this.#expect(")");
    if (name === "attribute_exists") return held !== undefined;
    if (name === "attribute_not_exists") return held === undefined;
    if (name === "begins_with")
      return held !== undefined && textIn(held).startsWith(textIn(prefix!));
    throw new Error(`Unknown function ${name}`);
  }

  #value(): AttributeValue {
    return getValue(this.#words.shift()!, this.#input);
  }

  #skip(word: string): boolean {
    if (this.#words[0] !== word) return false;
    this.#words.shift();
    return true;
  }

  #expect(word: string): void {
    if (!this.#skip(word)) throw new Error(`Expected ${word} before ${this.#words.join(" ")}`);
  }
}

/** A comparison with an attribute that is not there, or is of another type, is false. */
function isTrue(
  left: AttributeValue | undefined,
  operator: string,
  right: AttributeValue,
): boolean {
  if (left === undefined || Object.keys(left)[0] !== Object.keys(right)[0]) return false;
  const [a, b] = "N" in left ? [numberIn(left), numberIn(right)] : [textIn(left), textIn(right)];
  switch (operator) {
    case "=":
      return a === b;
    case "<":
      return a < b;
    case "<=":
      return a <= b;
    case ">":
      return a > b;
    case ">=":
      return a >= b;
    default:
      throw new Error(`Unknown operator ${operator}`);
  }
}

function getName(word: string, { ExpressionAttributeNames: names }: ExpressionInput): string {
  return word.startsWith("#") ? names![word]! : word;
}

function getValue(
  word: string,
  { ExpressionAttributeValues: values }: ExpressionInput,
): AttributeValue {
  const value = values?.[word];
  if (value === undefined) throw new Error(`No value ${word}`);
  return value;
}

function numberIn(value: AttributeValue): number {
  return Number((value as { readonly N: string }).N);
}

function textIn(value: AttributeValue): string {
  return (value as { readonly S: string }).S;
}
