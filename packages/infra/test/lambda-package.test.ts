import { unzipSync, zipSync } from "fflate";
import { expect, it } from "vitest";
import { lambdaPackage } from "../src/index.ts";
import { codeKey } from "../src/code/lambda-package.ts";

it.each(["aggregator", "provisioner"] as const)(
  "the code of the %s is one file, and the same code has the same bytes and key [W-64]",
  async (name) => {
    const code = await lambdaPackage(name);
    const files = unzipSync(code.content);
    expect(Object.keys(files)).toEqual(["index.mjs"]);
    // No time of this machine is in it: packed again at any time, it is the same.
    const again = zipSync({
      "index.mjs": [files["index.mjs"]!, { mtime: "1980-01-01T00:00:00", level: 9 }],
    });
    expect(Buffer.compare(again, code.content)).toBe(0);
    expect(code.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(codeKey(code)).toBe(`zae-limiter/${code.sha256}/${name}.zip`);
  },
);
