/* Runs the provider until it is stopped: `node examples/local-provider/dist/main.js [port]`. */
import { startProvider } from "./provider.ts";

const USAGE = `Usage: node examples/local-provider/dist/main.js [port]

Answers like OpenAI and Anthropic until it is stopped, and prints the variables that point clients to it.
Without a port, it takes one that is free.`;

const [port = "0"] = process.argv.slice(2);
if (/^\d+$/.test(port)) await start(Number(port));
else console.log(USAGE);

async function start(wanted: number): Promise<void> {
  const { environment } = await startProvider({ port: wanted });
  for (const [name, value] of Object.entries(environment)) console.log(`export ${name}=${value}`);
}
