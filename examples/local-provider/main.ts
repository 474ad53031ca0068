/* Runs the provider until it is stopped: `node examples/local-provider/dist/main.js [port]`. */
import { startProvider } from "./provider.ts";

const { environment } = await startProvider({ port: Number(process.argv[2] ?? 0) });
for (const [name, value] of Object.entries(environment)) console.log(`export ${name}=${value}`);
