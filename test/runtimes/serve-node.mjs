import { serve } from "@hono/node-server";
import { answer } from "./essentials.mjs";

serve({ fetch: answer, hostname: "127.0.0.1", port: 0 }, ({ port }) => {
  console.log(`Listening on http://127.0.0.1:${port}`);
});
