import { expect, it } from "vitest";
import { findDeployment, findProtocol } from "./llm-path.ts";

it.each([
  ["/v1/chat/completions", "chat"],
  ["/v1/chat/completions/", "chat"],
  ["/openai/deployments/gpt-5/chat/completions", "chat"],
  ["/v1beta/openai/chat/completions", "chat"],
  ["/chat/completions", "chat"],
  ["/v1/completions", "completions"],
  ["/v1/responses", "responses"],
  ["/v1/embeddings", "embeddings"],
  ["/v1/messages", "messages"],
])("%s is for a model: %s", (path, protocol) => {
  expect(findProtocol("POST", path)).toBe(protocol);
});

it.each([
  "/",
  "/v1/models",
  "/v1/messages/count_tokens",
  "/v1/messages/batches",
  "/v1/responses/resp_1",
  "/v1/responses/compact",
  "/v1/responses/resp_1/cancel",
  "/v1/chat/completions/chatcmpl-1",
  "/v1/threads/thread_1/messages",
  "/v1/mycompletions",
  "/v1/audio/speech",
])("%s is not for a model", (path) => {
  expect(findProtocol("POST", path)).toBeUndefined();
});

it("only POST asks a model", () => {
  for (const method of ["GET", "HEAD", "DELETE", "OPTIONS", "PUT", "post", ""])
    expect(findProtocol(method, "/v1/responses")).toBeUndefined();
});

it.each([
  ["/openai/deployments/gpt-5/chat/completions", "gpt-5"],
  ["/openai/deployments/my%20model/embeddings", "my model"],
  ["/openai/deployments/100%/embeddings", "100%"],
  ["/v1/chat/completions", undefined],
])("%s names the deployment %s", (path, name) => {
  expect(findDeployment(path)).toBe(name);
});
