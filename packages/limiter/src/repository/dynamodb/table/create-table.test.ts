import { describe, expect, it } from "vitest";
import { tableDeclaration } from "./create-table.ts";

describe("the declaration of the table", () => {
  it("has no local indexes, exactly the keys that it uses, and a stream if wanted", () => {
    const table = tableDeclaration({ stream: true });
    const used = [table, ...table.GlobalSecondaryIndexes].flatMap(({ KeySchema }) =>
      KeySchema.map(({ AttributeName }) => AttributeName),
    );
    expect(table.AttributeDefinitions.map(({ AttributeName }) => AttributeName)).toEqual(used);
    expect(table).not.toHaveProperty("LocalSecondaryIndexes");
    expect(table.StreamSpecification?.StreamViewType).toBe("NEW_AND_OLD_IMAGES");
    expect(tableDeclaration({ stream: false })).not.toHaveProperty("StreamSpecification");
  });
});
