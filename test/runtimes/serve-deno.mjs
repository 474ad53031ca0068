/* global Deno */
import { answer } from "./essentials.mjs";

const onListen = ({ port }) => console.log(`Listening on http://127.0.0.1:${port}`);
Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, answer);
