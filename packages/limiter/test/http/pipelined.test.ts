import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { until } from "./client.ts";
import { Gate, nextTurns, Setting } from "./scenarios/setting.ts";
import { collectWarnings } from "./scenarios/warnings.ts";
import { express5Server } from "./servers/express.ts";
import { fastifyServer } from "./servers/fastify.ts";
import { nodeListener } from "./servers/listener.ts";
import { honoServer, nodeHandler } from "./servers/web.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\nx-key: key-1\r\n\r\n";

/** Node closes only the first of the responses whose connection has ended. */
describe.each([nodeListener, express5Server, fastifyServer, honoServer, nodeHandler])(
  "pipelined requests whose connection ends early: $name",
  (adapter) => {
    it.each(["by itself", "because handlers destroy responses"])(
      "settles each once: %s",
      async (how) => {
        const warnings = collectWarnings();
        const setting = await Setting.create(adapter);
        const gate = new Gate();
        let [runs, ends] = [0, 0];
        const server = await setting.serve(
          [
            {
              consume: { tpm: 1 },
              settle: ({ completed }) => {
                ends += 1;
                return completed ? undefined : "give-back";
              },
            },
          ],
          async () => {
            runs += 1;
            await gate.opened;
            return { body: "late" };
          },
        );
        const client = connect(server.port, "127.0.0.1").on("error", () => {});
        // More than the listeners that Node allows without a warning.
        client.write(REQUEST.repeat(15));
        await until(() => runs === 15);
        if (how === "by itself") client.destroy();
        // The first response comes last: until then, the others wait for their turn.
        else for (const response of server.responses.toReversed()) response.destroy();
        await until(() => ends === 15);
        gate.open();
        await nextTurns();
        expect([runs, ends, await setting.left("tpm")]).toEqual([15, 15, 100]);
        expect(warnings).toEqual([]);
      },
    );

    it("leaves the queue, and is charged nothing", async () => {
      const setting = await Setting.create(adapter);
      const gate = new Gate();
      let runs = 0;
      const server = await setting.serve(
        [{ consume: { rpm: 2 }, waitUpToMs: 90_000 }],
        async () => {
          runs += 1;
          await gate.opened;
          return { body: "late" };
        },
      );
      const client = connect(server.port, "127.0.0.1").on("error", () => {});
      client.write(REQUEST.repeat(2));
      await until(() => runs === 1 && setting.clock.sleeping === 1);
      client.destroy();
      await until(() => setting.clock.sleeping === 0);
      gate.open();
      await setting.clock.advance(60_000);
      await nextTurns();
      expect([runs, await setting.left()]).toEqual([1, 3]);
    });
  },
);
