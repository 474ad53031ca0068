// `npm run chat-server`: starts the server, and visits it; with `--serve`, you visit it.
import type { AddressInfo } from "node:net";
import { startProvider } from "#local-provider";
import { MemoryRepository } from "zae-limiter/memory";
import { chatServer, MODEL, storeLimits, TEAM } from "./server.ts";
import { visit } from "./visit.ts";

const KEYS = ["ann-secret", "bob-secret"];
const PORT = 3000;

// Without an account, a provider on this machine answers.
const provider = process.env["OPENAI_API_KEY"] === undefined ? await startProvider() : undefined;
Object.assign(process.env, provider?.environment);
const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
await storeLimits(repository, KEYS);

const isServing = process.argv.includes("--serve");
const server = chatServer(repository).listen(isServing ? PORT : 0);
await new Promise((resolve) => server.once("listening", resolve));
const url = `http://localhost:${(server.address() as AddressInfo).port}`;

if (isServing) {
  console.log(
    `Chat with ${MODEL} at ${url}, as one of two keys of ${TEAM}; Ctrl-C ends the server:\n`,
  );
  for (const key of KEYS)
    console.log(
      `  curl -N ${url}/chat -H "Authorization: Bearer ${key}" -H "Content-Type: text/plain" -d "Hello!"`,
    );
} else {
  await visit(url, KEYS, repository, (line) => console.log(line));
  server.close().closeAllConnections();
  await provider?.stop();
  await repository.close();
}
