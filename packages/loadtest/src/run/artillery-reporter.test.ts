import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";

const REPORTER = new URL("../../dist/run/artillery-reporter.js", import.meta.url);

it.each([
  ["the load ends when the command is killed", "setInterval(() => {}); process.send(1);", 1],
  ["the load ends when the command was killed", "setInterval(() => {});", 1],
  ["does not keep the process of the load alive", "", 0],
])("%s", async (_, load, code) => {
  const program = `import report from "${REPORTER.href}"; report({ on() {} }); ${load}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exit = once(child, "exit");
  if (load.includes("send")) await once(child, "message");
  if (code === 1) child.disconnect();
  expect(await exit).toEqual([code, null]);
});
