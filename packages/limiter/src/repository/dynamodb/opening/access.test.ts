/* Without region, credentials or permission, opening says in one sentence what to do. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RateLimiter } from "zae-limiter";
import { DynamoRepository, leanTransport, type DynamoOptions } from "zae-limiter/dynamodb";
import {
  refuse,
  reply,
  startScriptedServer,
  type ScriptedServer,
} from "../../../../test/support/scripted-server.ts";

const region = "eu-west-1";
let server: ScriptedServer;

/** The settings of the machine that runs the tests must not be found. */
beforeEach(async () => {
  for (const name of Object.keys(process.env).filter((variable) => variable.startsWith("AWS_")))
    vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
  vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  server = await startScriptedServer();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.stop();
});

/** How each transport reaches a place; the end of the test closes it. */
const TRANSPORTS: readonly (readonly [
  string,
  (place: { endpointUrl?: string }) => Promise<DynamoOptions>,
])[] = [
  ["the SDK", async (place) => ({ region, ...place })],
  [
    "the lean transport",
    async (place) => ({ transport: await leanTransport({ region, ...place }) }),
  ],
  [
    "a client of one's own",
    async ({ endpointUrl }) => ({
      client: new DynamoDBClient({
        region,
        maxAttempts: 1,
        ...(endpointUrl !== undefined && { endpoint: endpointUrl }),
      }),
    }),
  ],
];

describe.each(TRANSPORTS)("with %s", (_, optionsAt) => {
  it("says that there are no credentials, and where they can come from", async () => {
    const opening = DynamoRepository.open("app", await optionsAt({}));
    await expect(opening).rejects.toMatchObject({
      name: "PermissionDenied",
      code: "ERR_LIMITER_NO_CREDENTIALS",
      message: expect.stringMatching(
        /^No AWS credentials were found \(.+\): set AWS_ACCESS_KEY_ID and .*, or pass credentials\.$/,
      ),
    });
  });

  it.each([
    [
      "UnrecognizedClientException",
      "ERR_LIMITER_NO_CREDENTIALS",
      "AWS does not accept the credentials",
    ],
    ["ExpiredTokenException", "ERR_LIMITER_NO_CREDENTIALS", "AWS does not accept the credentials"],
    [
      "AccessDeniedException",
      "ERR_LIMITER_PERMISSION_DENIED",
      "AWS denied dynamodb:BatchGetItem on table zae-limiter: attach the policy",
    ],
  ])("reports %s with code %s", async (name, code, text) => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "key");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
    server.answer = (outgoing) => refuse(outgoing, name);
    const { endpointUrl } = server;
    const opening = DynamoRepository.open("app", {
      ...(await optionsAt({ endpointUrl })),
      provisioning: "stack",
    });
    await expect(opening).rejects.toMatchObject({
      name: "PermissionDenied",
      code,
      message: expect.stringContaining(text),
    });
    // It is not tried again: nothing would change.
    expect(server.seen).toHaveLength(1);
  });
});

it("credentials that are lost while a process runs never let a call through", async () => {
  let have = true;
  const credentials = async () => {
    if (!have)
      throw Object.assign(new Error("the role is gone"), { name: "CredentialsProviderError" });
    // They expire at once, so that every call asks again.
    return { accessKeyId: "key", secretAccessKey: "secret", expiration: new Date(0) };
  };
  server.answer = (outgoing, { headers }) =>
    reply(outgoing, headers["x-amz-target"]?.includes("BatchGet") ? { Responses: {} } : {});
  const client = new DynamoDBClient({
    region,
    endpoint: server.endpointUrl,
    credentials,
    maxAttempts: 1,
  });
  await using repository = await DynamoRepository.open("app", { client });
  have = false;
  const limiter = new RateLimiter({ repository, onUnavailable: "allow" });
  const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
  await expect(limiter.acquire(call)).rejects.toMatchObject({
    code: "ERR_LIMITER_NO_CREDENTIALS",
  });
});
