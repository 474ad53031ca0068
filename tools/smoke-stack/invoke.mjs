// Calls the handler of a bundled function with the event on standard input, as Lambda does.
import { text } from "node:stream/consumers";

const [bundle] = process.argv.slice(2);
const answer = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
const { handler } = await import(bundle);
const event = JSON.parse(await text(process.stdin));
const result = await handler(event, {
  getRemainingTimeInMillis: () => 60_000,
  awsRequestId: "smoke",
});
answer(JSON.stringify(result ?? null), () => process.exit(0));
