import { afterEach, expect, it, vi } from "vitest";
import { hashedId } from "../http/identity/ids.ts";
import { forgetWarnings } from "./warn-once.ts";
import { warnOfSecret } from "./warn-of-secret.ts";

afterEach(() => {
  forgetWarnings();
  vi.restoreAllMocks();
});

const secrets = [
  "sk-proj-abcdefghijklmnopqrstuvwx",
  "sk_live_abcdefghijklmnopqrstuvwx",
  "sk-ant-api03-abcdefghijklmnop",
  "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
  "xoxb-1234-5678-abc",
  "AKIAIOSFODNN7EXAMPLE",
  "AIzaSyA1234567890abcdefghijklmnopqrstuv",
  "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
];
it.each(secrets)("warns of %s, and does not repeat it", (secret) => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  warnOfSecret(secret);
  warnOfSecret(secret);
  expect(warned).toHaveBeenCalledOnce();
  expect(warned).toHaveBeenCalledWith(expect.not.stringContaining(secret), {
    code: "WARN_LIMITER_SECRET_AS_ID",
  });
});

const ids = [
  "key-1",
  "sk-1",
  "team:blue",
  "user@example.com",
  "ip:203.0.113.7",
  "ip6:20010db8000012.56",
  "0189c5f0-7a3c-7b1e-9c55-6d2b7a1f0e11",
  "eyJack",
  hashedId("sk", "sk-proj-abcdefghijklmnopqrstuvwx"),
];
it.each(ids)("takes %s for an id", (id) => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  warnOfSecret(id);
  expect(warned).not.toHaveBeenCalled();
});
