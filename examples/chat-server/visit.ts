// Visits the server: two keys chat, a reader hangs up, and then the team's tokens are used up.
import { setTimeout as sleep } from "node:timers/promises";
import type { Repository } from "zae-limiter";
import { hashedId, type RefusalProblem } from "zae-limiter/http";
import { TEAM } from "./server.ts";

const MAX_QUESTIONS = 50;

export async function visit(
  url: string,
  keys: readonly string[],
  repository: Repository,
  print: (line: string) => void,
): Promise<void> {
  const ask = (key: string, question: string, signal?: AbortSignal): Promise<Response> =>
    fetch(`${url}/chat`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "text/plain" },
      body: question,
      ...(signal === undefined ? {} : { signal }),
    });

  for (const key of keys)
    print(`${key}: ${await (await ask(key, "What is a token bucket?")).text()}`);

  const hangUp = new AbortController();
  const slow = await ask(keys[0]!, "Tell me slowly what a lease is.", hangUp.signal);
  const reader = slow.body!.getReader();
  const { value } = await reader.read();
  hangUp.abort();
  await reader.cancel().catch(() => {});
  print(
    `${keys[0]} hangs up after "${new TextDecoder().decode(value)}", and pays for what was delivered`,
  );
  await sleep(100); // the server notices

  const long = `And again? ${"Please. ".repeat(300)}`;
  for (let answered = 0; answered < MAX_QUESTIONS; answered += 1) {
    const response = await ask(keys[answered % keys.length]!, long);
    const text = await response.text();
    if (response.status !== 429) continue;
    print(`${answered} long questions later: ${(JSON.parse(text) as RefusalProblem).detail}`);
    break;
  }

  for (const entityId of [...keys.map((key) => hashedId("key", key)), TEAM]) {
    const { requests, total } = await repository.getUsageSummary({ entityId });
    print(`${entityId}: ${requests} requests, ${total["tpm"]} tokens`);
  }
}
