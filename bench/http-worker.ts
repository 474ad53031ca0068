/*
 * One contestant in a process of its own: a server on a free port, which it tells its parent. Then
 * each message is answered with the time and the CPU time since the message before. Usage:
 * node http-worker.js FRAMEWORK LIMITS LOAD
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Cost } from "./harness.ts";
import { buildListener, type Framework, type Limits, type Load } from "./http-contestants.ts";

const [framework, limits, load] = process.argv.slice(2) as [Framework, Limits, Load];
const server = createServer(await buildListener(framework, limits, load));
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
let cpu = process.cpuUsage();
let startNs = process.hrtime.bigint();
process.on("message", () => {
  const { user, system } = process.cpuUsage(cpu);
  const nowNs = process.hrtime.bigint();
  const cost: Cost = { wallNs: Number(nowNs - startNs), cpuNs: (user + system) * 1000 };
  process.send?.(cost);
  cpu = process.cpuUsage();
  startNs = nowNs;
});
process.once("disconnect", () => process.exit());
