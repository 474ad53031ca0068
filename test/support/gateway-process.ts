import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

/** A recipe that is a server, in a process of its own. */
export interface Gateway {
  readonly url: string;
  ask(key: string, question: string, signal?: AbortSignal): Promise<Response>;
  /** The next line that it prints. */
  nextLine(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a recipe on a free port. */
export async function startGateway(
  program: string,
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<Gateway> {
  const child = spawn(process.execPath, [program], {
    cwd,
    env: { ...process.env, ...env, PORT: "0" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const nextLine = listLines(child);
  const [url] = /http:\S+/.exec(await nextLine())!;
  return {
    url,
    ask: (key, question, signal) =>
      fetch(`${url}/chat`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ question }),
        ...(signal && { signal }),
      }),
    nextLine,
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null) resolve();
        child.on("exit", () => resolve());
        child.kill();
      }),
  };
}

/** Asks again and again. A slow machine earns a few calls meanwhile, but never so many. */
export async function untilRefused(gateway: Gateway): Promise<Response> {
  for (let calls = 0; calls < 500; calls += 1) {
    const response = await gateway.ask("key-ann", "What is a token bucket?");
    if (response.status !== 200) return response;
    await response.text();
  }
  throw new Error("The gateway refused none of 500 calls.");
}

/** Returns one line after another. */
function listLines(child: ChildProcess): () => Promise<string> {
  const iterator = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return async () => {
    const { value, done } = await iterator.next();
    if (done === true) throw new Error("The process ended, and prints no more lines.");
    return value;
  };
}
