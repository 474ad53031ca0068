import { execFileSync } from "node:child_process";

/** Runs npm, which prints nothing but errors. On Windows it is a script that needs a shell. */
export function runNpm(args, options = {}) {
  const output = { stdio: ["ignore", "ignore", "inherit"], ...options };
  if (process.platform !== "win32") execFileSync("npm", args, output);
  else
    execFileSync(["npm", ...args.map((arg) => `"${arg}"`)].join(" "), { ...output, shell: true });
}
