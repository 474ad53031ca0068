import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import {
  marshal,
  marshalItem,
  readNumber,
  unmarshal,
  unmarshalItem,
  type Value,
} from "./attribute-values.ts";

describe("attribute values", () => {
  it("reads back what it wrote", () => {
    const leaf = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.bigInt({ min: 2n ** 60n, max: 2n ** 70n }),
      fc.boolean(),
      fc.constant(null),
    );
    const { tree } = fc.letrec<{ tree: Value }>((tie) => ({
      tree: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.array(tie("tree")),
        fc.dictionary(fc.string(), tie("tree"), { noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        expect(unmarshal(marshal(value))).toEqual(value);
      }),
    );
  });

  it("leaves out what is undefined", () => {
    expect(marshalItem({ a: 1, b: undefined })).toEqual({ a: { N: "1" } });
  });

  it("keeps integers beyond the safe range exact", () => {
    expect(readNumber("9007199254740993")).toBe(9007199254740993n);
    expect(readNumber("9007199254740991")).toBe(Number.MAX_SAFE_INTEGER);
    expect(readNumber("1.5")).toBe(1.5);
  });

  it("refuses numbers that have no place in an item", () => {
    expect(() => marshal(Number.NaN)).toThrow(TypeError);
    expect(() => marshal(Infinity)).toThrow(TypeError);
  });

  it("gives no attribute name a special meaning", () => {
    const item = JSON.parse('{"__proto__":{"S":"x"},"constructor":{"N":"1"}}');
    expect(Object.keys(unmarshalItem(item))).toEqual(["__proto__", "constructor"]);
  });

  it("refuses types that a later write would drop", () => {
    expect(() => unmarshal({ B: new Uint8Array() } as never)).toThrow("B is not supported");
  });
});
