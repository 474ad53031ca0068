import { fileURLToPath } from "node:url";
import type { Bill } from "../bill.ts";
import { NEVER_REACHED } from "../cases.ts";
import type { Contestant } from "./contestant.ts";
import { ORIGINAL, pythonEnvironment } from "../python-environment.ts";
import { PythonProcess } from "../python-process.ts";

const driver = fileURLToPath(
  new URL("../../../dynamodb/contestants/original_driver.py", import.meta.url),
);

/** The original, or why it does not take part. */
export async function original(
  endpointUrl: string,
  options: {
    readonly mayInstall: boolean;
    /** Its limits are calendar quotas of a day instead of rates. @default false */
    readonly quotas?: boolean;
  },
): Promise<Contestant | { readonly missing: string }> {
  const environment = await pythonEnvironment(ORIGINAL, options);
  if ("missing" in environment) return environment;
  const python = new PythonProcess(environment.python, driver);
  try {
    const versions = (await python.ask({
      do: "open",
      endpoint: endpointUrl,
      never: NEVER_REACHED,
      quotas: options.quotas ?? false,
    })) as Readonly<Record<string, string>>;
    return contestant(
      python,
      `the original ${versions["zae_limiter"]}, Python ${versions["python"]}`,
    );
  } catch (error) {
    await python.end();
    return { missing: `it could not be opened: ${(error as Error).message}` };
  }
}

function contestant(python: PythonProcess, name: string): Contestant {
  return {
    id: "original",
    name,
    enter: async (race) => {
      await python.ask({ do: "enter", case: race });
      return {
        run: async (operations) => {
          const { wall, cpu } = (await python.ask({ do: "run", operations })) as {
            readonly wall: number;
            readonly cpu: number;
          };
          return { wallNs: wall * 1e9, cpuNs: cpu * 1e9 };
        },
        bill: async (operations) => (await python.ask({ do: "bill", operations })) as Bill,
      };
    },
    close: async () => python.end(),
  };
}
