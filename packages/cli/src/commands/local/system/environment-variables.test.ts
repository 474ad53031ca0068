import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { localVariables, variablesText } from "./environment-variables.ts";

const address = {
  stack: "zae-limiter",
  region: "us-east-1",
  endpointUrl: "http://127.0.0.1:8000",
};
const NASTY = { PLAIN: "a b", QUOTED: `it's "$HOME" \`pwd\` \\ ;&?`, LINES: "one\ntwo" };

it("every command needs these variables", () => {
  expect(localVariables(address)).toEqual({
    ZAEL_REPOSITORY: "dynamodb://us-east-1/zae-limiter?endpoint=http://127.0.0.1:8000",
    AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:8000",
    AWS_ENDPOINT_URL_DYNAMODB_STREAMS: "http://127.0.0.1:8000",
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  });
});

it.each(["eval", "direnv"] as const)("a shell reads %s as it was meant", (format) => {
  const script = `${variablesText(NASTY, format)}printf '%s|' "$PLAIN" "$QUOTED" "$LINES" "$AWS_PROFILE"`;
  const env = { AWS_PROFILE: "of-an-account" };
  expect(execFileSync("sh", ["-c", script], { env, encoding: "utf8" })).toBe(
    `${NASTY.PLAIN}|${NASTY.QUOTED}|${NASTY.LINES}||`,
  );
});

it("PowerShell gets strings in single quotes, with each kind of them doubled", () => {
  expect(variablesText({ NAME: "it's \u2019quoted\u2019 $HOME" }, "powershell")).toBe(
    "$env:NAME = 'it''s \u2019\u2019quoted\u2019\u2019 $HOME'\n" +
      "Remove-Item Env:AWS_PROFILE -ErrorAction SilentlyContinue\n" +
      "Remove-Item Env:AWS_SESSION_TOKEN -ErrorAction SilentlyContinue\n",
  );
});

it("a program gets JSON", () => {
  expect(JSON.parse(variablesText(NASTY, "json"))).toEqual(NASTY);
});
