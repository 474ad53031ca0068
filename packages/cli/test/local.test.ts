// What needs no engine: options, and verbs on a system that does not run.
import { expect, it } from "vitest";
import { zaeLimiter } from "./command-line.ts";

it.each([
  ["up --port abc", "It must be a whole number from 0 to 65535."],
  ["up --port 65536", "It must be a whole number from 0 to 65535."],
  ["up --port -1", "It must be a whole number from 0 to 65535."],
  ["up --data=", "It must be the name of a folder."],
  ["up --engine sqlite", "Allowed choices are dynoxide, dynamodb-local."],
  ["up --stack ../elsewhere", "cannot be a stack: it must begin with a letter"],
  ["up --stack ..", "'..' cannot be a stack"],
  ["up --repository dynamodb://eu-west-1/my-stack", "Leave out --repository and --endpoint-url"],
  ["status --endpoint-url http://127.0.0.1:8000", "Leave out --repository and --endpoint-url"],
  ["logs --tail 0", "It must be a whole number of at least 1."],
  ["logs --follow --json", "Leave out --json."],
  ["env --format fish", "Allowed choices are eval, direnv, powershell, json."],
])("local %s exits 2", async (line, text) => {
  const { code, stdout, stderr } = await zaeLimiter(`local ${line}`);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(text);
});

it("where nothing runs, status, env and logs exit 1, and down has nothing to do", async () => {
  expect((await zaeLimiter("local status")).code).toBe(1);
  expect(JSON.parse((await zaeLimiter("local status --json")).stdout)).toMatchObject({
    running: false,
    stack: "zae-limiter",
  });
  const { code, stderr } = await zaeLimiter("local env --stack other --json");
  expect(code).toBe(1);
  expect(JSON.parse(stderr)).toEqual({
    error: {
      code: "ERR_CLI_LOCAL",
      message: "other is not running. To start it: zae-limiter local up --detach --stack other",
    },
  });
  expect((await zaeLimiter("local logs")).stderr).toContain("it was never started");
  expect(await zaeLimiter("local down")).toEqual({
    code: 0,
    stdout: "zae-limiter is not running.\n",
    stderr: "",
  });
});

it("a folder that cannot be created ends a start before it begins", async () => {
  const { code, stderr } = await zaeLimiter("local up --detach");
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error: The folder .* cannot be used: ENOTDIR.*ZAEL_LOCAL_FOLDER\.\n$/);
});
