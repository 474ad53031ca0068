import { fileURLToPath } from "node:url";
import { ORIGINAL, pythonEnvironment } from "../dynamodb/python-environment.ts";
import { PythonProcess } from "../dynamodb/python-process.ts";
import type { Contestant, WriteBill } from "./contestant.ts";

const driver = fileURLToPath(new URL("../../aggregator/original_driver.py", import.meta.url));

interface Run extends WriteBill {
  readonly wall: number;
  readonly cpu: number;
}

/** The original's aggregator, or why it does not take part. */
export async function original(
  endpointUrl: string,
  options: { readonly mayInstall: boolean },
): Promise<Contestant | { readonly missing: string }> {
  const environment = await pythonEnvironment(ORIGINAL, options);
  if ("missing" in environment) return environment;
  const python = new PythonProcess(environment.python, driver);
  try {
    const opened = await python.ask({ do: "open", endpoint: endpointUrl });
    const versions = opened as Readonly<Record<string, string>>;
    return {
      id: "original",
      name: `the original ${versions["zae_limiter"]}, Python ${versions["python"]}`,
      enter: async ({ entities, batch }) => {
        await python.ask({ do: "enter", entities, batch });
        return {
          run: async (records) => {
            const { wall, cpu } = (await python.ask({ do: "run", records })) as Run;
            return { wallNs: wall * 1e9, cpuNs: cpu * 1e9 };
          },
          bill: async (records) =>
            (await python.ask({ do: "run", records, counting: true })) as Run,
        };
      },
      close: async () => python.end(),
    };
  } catch (error) {
    await python.end();
    return { missing: `it could not be opened: ${(error as Error).message}` };
  }
}
