import { afterEach, expect, it } from "vitest";
import { askSupervisor, ControlServer } from "./control.ts";

let server: ControlServer | undefined;
afterEach(() => server?.close());

it("answers and obeys those who know its token, and nobody else", async () => {
  let stops = 0;
  server = await ControlServer.start({
    status: () => ({ stack: "zae-limiter" }),
    stop: () => (stops += 1),
  });
  const { address } = server;
  for (const token of ["", "x".repeat(address.token.length), address.token.slice(1)]) {
    expect(await askSupervisor({ ...address, token }, "GET")).toBeUndefined();
    expect(await askSupervisor({ ...address, token }, "POST")).toBeUndefined();
  }
  expect(stops).toBe(0);
  expect(await askSupervisor(address, "GET")).toEqual({ stack: "zae-limiter" });
  expect(stops).toBe(0);
  await askSupervisor(address, "POST");
  expect(stops).toBe(1);
});

it("one that is gone does not answer", async () => {
  const { address } = (server = await ControlServer.start({ status: () => ({}), stop: () => {} }));
  server.close();
  expect(await askSupervisor(address, "GET")).toBeUndefined();
});
