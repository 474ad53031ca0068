import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PermissionDenied, ValidationError } from "zae-limiter";
import { useLeanCalls } from "../../../../../test/support/lean-calls.ts";
import { temporaryFile } from "../../../../../test/support/temporary-file.ts";
import { systemClock } from "../../../system-clock.ts";
import { CredentialCache, chooseProvider } from "./lean-credentials.ts";
import { openLeanTransport } from "./lean-transport.ts";

const lean = useLeanCalls();
const NOWHERE = "/dev/null";

/** The settings of the machine that runs the tests must not be found. */
beforeEach(() => {
  for (const name of Object.keys(process.env).filter((variable) => variable.startsWith("AWS_")))
    vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", NOWHERE);
  vi.stubEnv("AWS_CONFIG_FILE", NOWHERE);
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
});

afterEach(() => {
  vi.unstubAllEnvs();
});

async function cacheFor(): Promise<CredentialCache> {
  const { environment, clock } = surroundings();
  const provide = await chooseProvider(undefined, {
    region: "eu-west-1",
    endpointUrl: undefined,
    environment,
  });
  return new CredentialCache(provide, () => clock.now());
}

const surroundings = (): Parameters<typeof openLeanTransport>[1] => ({
  environment: process.env,
  clock: systemClock,
});

describe("the SDK's providers", () => {
  it("find the credentials of a profile", async () => {
    const file = temporaryFile("credentials");
    writeFileSync(
      file,
      "[work]\naws_access_key_id = from-profile\naws_secret_access_key = secret\n",
    );
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", file);
    vi.stubEnv("AWS_PROFILE", "work");
    const cache = await cacheFor();
    expect(await cache.get()).toMatchObject({
      accessKeyId: "from-profile",
      secretAccessKey: "secret",
    });
  });

  it("find those of a container, and fetch them again when they were refused", async () => {
    let count = 0;
    lean.server.answer = (outgoing) => {
      const Expiration = new Date(systemClock.now() + 3_600_000).toISOString();
      outgoing.end(
        JSON.stringify({
          AccessKeyId: `key-${(count += 1)}`,
          SecretAccessKey: "secret",
          Token: "token",
          Expiration,
        }),
      );
    };
    vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", `${lean.server.endpointUrl}/container`);
    const cache = await cacheFor();
    const first = await cache.get();
    expect(first).toMatchObject({ accessKeyId: "key-1", sessionToken: "token" });
    expect(cache.get()).toBe(first);
    cache.reject(first);
    expect(await cache.get()).toMatchObject({ accessKeyId: "key-2" });
  });

  it("say what to do when they find none", async () => {
    const error: unknown = await Promise.resolve((await cacheFor()).get()).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(PermissionDenied);
    expect((error as Error).message).toMatch(
      /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, .* or pass credentials\./,
    );
  });

  it("find the region of a profile, or ask for it", async () => {
    await expect(openLeanTransport({}, surroundings())).rejects.toThrow(ValidationError);
    const file = temporaryFile("config");
    writeFileSync(file, "[default]\nregion = eu-north-1\n");
    vi.stubEnv("AWS_CONFIG_FILE", file);
    const transport = await openLeanTransport({}, surroundings());
    expect(transport.region).toBe("eu-north-1");
    transport.close();
  });

  it.each([
    "use_fips_endpoint = true",
    "use_dualstack_endpoint = true",
    "account_id_endpoint_mode = required",
    "endpoint_url = http://127.0.0.1:1",
  ])("find %s, which must not be ignored", async (line) => {
    const file = temporaryFile("config");
    writeFileSync(
      file,
      `[default]\nregion = eu-north-1\naws_access_key_id = key\naws_secret_access_key = secret\n${line}\n`,
    );
    vi.stubEnv("AWS_CONFIG_FILE", file);
    const setting = line.split(" ")[0]!;
    await expect(openLeanTransport({}, surroundings())).rejects.toThrow(
      `must be passed, because the profile has ${setting}`,
    );
    await expect(openLeanTransport({ region: "eu-west-1" }, surroundings())).rejects.toThrow(
      setting,
    );
    const transport = await openLeanTransport(
      { endpointUrl: lean.server.endpointUrl },
      surroundings(),
    );
    expect(await lean.call(transport)).toEqual({});
    transport.close();
  });
});
