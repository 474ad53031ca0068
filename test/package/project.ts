import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TSC = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A user's project: a folder outside of the workspace, and npm with a registry of our own. */
export class Project {
  readonly folder: string;
  readonly #environment: NodeJS.ProcessEnv;

  /** `environment` is what its programs find besides. */
  constructor(
    folder: string,
    registryUrl: string,
    environment: Readonly<Record<string, string>> = {},
  ) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    this.#environment = {
      ...withoutNpm(process.env),
      ...environment,
      npm_config_registry: registryUrl,
      npm_config_cache: join(folder, "..", "npm-cache"),
      npm_config_userconfig: join(folder, "..", "npmrc"),
      npm_config_update_notifier: "false",
      npm_config_audit: "false",
      npm_config_fund: "false",
    };
  }

  /** Runs npm, which must succeed and warn of nothing. */
  async npm(...args: readonly string[]): Promise<void> {
    const { code, stderr } = await this.run("npm", ...args);
    if (code !== 0 || stderr !== "") throw new Error(`npm ${args.join(" ")}: ${stderr}`);
  }

  /**
   * Compiles files of the project as strictly as its author may want. The types of OpenAI's client
   * do not compile by themselves; declarations.test.ts checks ours.
   */
  async compile(...files: readonly string[]): Promise<void> {
    const options = "--strict --target es2022 --module nodenext --types node --skipLibCheck";
    const { code, stdout } = await this.run(process.execPath, TSC, ...options.split(" "), ...files);
    if (code !== 0) throw new Error(`tsc ${files.join(" ")}: ${stdout}`);
  }

  /** Runs a command in the project, whatever comes of it. */
  run(command: string, ...args: readonly string[]): Promise<Outcome> {
    return toOutcome(command, args, { cwd: this.folder, env: this.#environment });
  }
}

/** What comes of a command. */
export function toOutcome(
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    // npm and npx are scripts on Windows.
    const shell = process.platform === "win32" && command !== process.execPath;
    execFile(command, args, { ...options, shell }, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === "number") resolve({ code, stdout, stderr });
      else reject(error!);
    });
  });
}

/** npm tells its scripts, such as these tests, about the workspace that it was started in. */
function withoutNpm(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const entries = Object.entries(environment).filter(([name]) => !/^npm_|^INIT_CWD$/i.test(name));
  return Object.fromEntries(entries);
}
