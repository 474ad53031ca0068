import { expect, it } from "vitest";
import { readSettings } from "./settings.ts";

const LEAST = { TABLE_NAME: "limits", AWS_REGION: "eu-west-1" };

it("has all windows and no archive unless the environment says otherwise", () => {
  expect(readSettings(LEAST)).toEqual({
    tableName: "limits",
    windows: ["hourly", "daily", "monthly"],
    bucketTtlMultiplier: undefined,
    usageRetentionDays: undefined,
    region: "eu-west-1",
    dynamodbUrl: undefined,
    archive: undefined,
  });
});

it("takes windows, shards, archive and addresses from the environment", () => {
  expect(
    readSettings({
      ...LEAST,
      SNAPSHOT_WINDOWS: "monthly, hourly",
      BUCKET_TTL_MULTIPLIER: "0",
      SNAPSHOT_TTL_DAYS: "30",
      ENABLE_ARCHIVAL: "true",
      ARCHIVE_BUCKET_NAME: "events",
      AWS_ENDPOINT_URL: "http://127.0.0.1:1",
      AWS_ENDPOINT_URL_S3: "http://127.0.0.1:2",
    }),
  ).toEqual({
    tableName: "limits",
    windows: ["hourly", "monthly"],
    bucketTtlMultiplier: 0,
    usageRetentionDays: 30,
    region: "eu-west-1",
    dynamodbUrl: "http://127.0.0.1:1",
    archive: { bucket: "events", endpointUrl: "http://127.0.0.1:2" },
  });
});

it("archives where a bucket is named, unless that is switched off", () => {
  const named = { ...LEAST, ARCHIVE_BUCKET_NAME: "events" };
  expect(readSettings(named).archive).toEqual({ bucket: "events", endpointUrl: undefined });
  expect(readSettings({ ...named, ENABLE_ARCHIVAL: "false" }).archive).toBeUndefined();
});

it.each([
  [{ TABLE_NAME: "" }, "The environment variable TABLE_NAME must be set to the name of the table."],
  [
    { AWS_REGION: undefined },
    "The environment variable AWS_REGION must be set to the region of the table.",
  ],
  [
    { SNAPSHOT_WINDOWS: "hourly,weekly" },
    "SNAPSHOT_WINDOWS must be a list of hourly, daily, monthly, separated by commas, not 'hourly,weekly'.",
  ],
  [{ SNAPSHOT_WINDOWS: "," }, "SNAPSHOT_WINDOWS must be a list of"],
  [{ SNAPSHOT_TTL_DAYS: "few" }, "SNAPSHOT_TTL_DAYS must be a whole number, not 'few'."],
  [{ SNAPSHOT_TTL_DAYS: "-1" }, "SNAPSHOT_TTL_DAYS must be a whole number, not '-1'."],
  [{ ENABLE_ARCHIVAL: "yes" }, "ENABLE_ARCHIVAL must be true or false, not 'yes'."],
  [
    { ENABLE_ARCHIVAL: "true" },
    "The environment variable ARCHIVE_BUCKET_NAME must be set to the bucket of the archive.",
  ],
])("refuses %j in one sentence", (wrong, message) => {
  expect(() => readSettings({ ...LEAST, ...wrong })).toThrow(message);
});
