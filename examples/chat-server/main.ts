// `npm run chat-server`: starts the server, and visits it; with `--serve`, you visit it.
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { startProvider } from "#local-provider";
import { MemoryRepository } from "zae-limiter/memory";
import { chatServer, MODEL, storeLimits, TEAM } from "./server.ts";
import { visit } from "./visit.ts";

const HELP = `Usage: npm run chat-server -- [options]

Starts a chat server with limits, visits it with two keys of one team, and ends.

Options:
  --serve        stay, and print commands to try
  --port <port>  the port to stay on (default: 3000)
  -h, --help     show this help`;

const KEYS = ["ann-secret", "bob-secret"];

const { serve, port, help } = parseOptions(process.argv.slice(2));
if (help) console.log(HELP);
else await run(serve, Number(port));

async function run(isServing: boolean, servingPort: number): Promise<void> {
  const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
  await storeLimits(repository, KEYS);
  // Without an account, a provider on this machine answers.
  const provider = process.env["OPENAI_API_KEY"] === undefined ? await startProvider() : undefined;
  Object.assign(process.env, provider?.environment);
  const answers = provider === undefined ? "OpenAI answers" : "A provider on this machine answers";
  console.log(`${answers}: OPENAI_API_KEY is ${provider === undefined ? "set" : "not set"}.\n`);

  const server = chatServer(repository, KEYS).listen(isServing ? servingPort : 0);
  const url = `http://localhost:${await listen(server)}`;
  if (isServing) return printCommands(url);
  await visit(url, KEYS, repository, (line) => console.log(line));
  server.close().closeAllConnections();
  await provider?.stop();
  await repository.close();
}

function printCommands(url: string): void {
  console.log(
    `Chat with ${MODEL} at ${url}, as one of two keys of ${TEAM}; Ctrl-C ends the server:\n`,
  );
  for (const key of KEYS)
    console.log(`  curl -N ${url}/chat -H "Authorization: Bearer ${key}" -d Hello`);
  console.log("\nSend a few dozen of them, and some are answered with 429. Add -i to see headers.");
}

/** Waits for the port of a server. Ends the process if the port is taken. */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.once("listening", resolve);
    server.once("error", (error) => leave(`${error.message}. Choose another port with --port.`));
  });
  return (server.address() as AddressInfo).port;
}

function parseOptions(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        serve: { type: "boolean", default: false },
        port: { type: "string", default: "3000" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (!/^\d{1,5}$/.test(values.port) || Number(values.port) > 65_535)
      throw new Error("--port must be a number from 0 to 65535.");
    return values;
  } catch (error) {
    return leave(`${(error as Error).message}\n\n${HELP}`);
  }
}

function leave(message: string): never {
  console.error(message);
  process.exit(1);
}
