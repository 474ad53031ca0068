import { fileURLToPath } from "node:url";
import { pythonEnvironment } from "../dynamodb/python-environment.ts";
import { PythonProcess } from "../dynamodb/python-process.ts";

const driver = fileURLToPath(new URL("../../shared-table/python_driver.py", import.meta.url));

/** How calls ended: "granted", "refused", "failed", and the messages of those that failed. */
export type Ends = Readonly<Record<string, number>>;

/** Where calls go, and how many: a number of calls, or for a time. */
export interface Load {
  readonly entity: string;
  readonly resource: string;
  readonly callers: number;
  readonly calls?: number;
  readonly seconds?: number;
}

/** The Python zae-limiter of one version, in a process of its own. */
export class PythonClient {
  readonly #process: PythonProcess;

  private constructor(process: PythonProcess) {
    this.#process = process;
  }

  static async start(version: string): Promise<PythonClient | { readonly missing: string }> {
    const environment = await pythonEnvironment(version, { mayInstall: true });
    return "missing" in environment
      ? environment
      : new PythonClient(new PythonProcess(environment.python, driver));
  }

  async create(endpoint: string, stack: string): Promise<void> {
    await this.#process.ask({ do: "create", endpoint, stack });
  }

  /** Throws as it does. */
  async open(endpoint: string, stack: string, options: { checked: boolean }): Promise<void> {
    await this.#process.ask({ do: "open", endpoint, stack, ...options });
  }

  async store(project: string, key: string, resource: string): Promise<void> {
    await this.#process.ask({ do: "store", project, key, resource });
  }

  async read(project: string, key: string, resource: string): Promise<Record<string, string>> {
    return (await this.#process.ask({ do: "read", project, key, resource })) as never;
  }

  async hammer(load: Load): Promise<Ends> {
    return (await this.#process.ask({ do: "hammer", ...load })) as Ends;
  }

  async end(): Promise<void> {
    await this.#process.end();
  }
}
