// Prints the tests that failed, from the results that vitest wrote as JSON: a line each, with the
// first line of its error.
import { readFileSync } from "node:fs";
import { relative } from "node:path";

const { testResults } = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const { name, message, assertionResults } of testResults) {
  const file = relative(process.cwd(), name);
  const failed = assertionResults.filter(({ status }) => status === "failed");
  if (failed.length === 0 && message) console.log(`${file}: ${firstLine(message)}`);
  for (const { fullName, failureMessages } of failed)
    console.log(`${file} > ${fullName}: ${firstLine(failureMessages[0] ?? "")}`);
}

function firstLine(text) {
  return text.split("\n", 1)[0];
}
