import { S3Client } from "@aws-sdk/client-s3";
import { isMotoInstalled, startMoto } from "../../../../tools/moto.mjs";
import { isVersitygwInstalled, startVersitygw } from "../../../../tools/versitygw.mjs";
import { startServer, type StartedServer } from "./server-process.ts";

/** moto, which is fetched in seconds, unless the stricter versitygw is asked for. */
const IS_VERSITYGW = process.env["ZAEL_S3_ENGINE"] === "versitygw";

/** Explains why no S3 server can be started; `undefined` if one can. */
export function whyS3IsMissing(): string | undefined {
  if (IS_VERSITYGW)
    return isVersitygwInstalled()
      ? undefined
      : "versitygw is not installed; run: node tools/versitygw.mjs (needs Go)";
  return isMotoInstalled()
    ? undefined
    : "moto is not installed; run: node tools/moto.mjs (needs Python)";
}

/** Starts a server that speaks S3's language, and waits until it answers. */
export function startS3(): Promise<StartedServer> {
  const start = IS_VERSITYGW ? startVersitygw : startMoto;
  return startServer((port) => start(port, { stdio: "ignore" }));
}

/** A client of a server on this machine. */
export function s3ClientAt(endpointUrl: string): S3Client {
  return new S3Client({
    endpoint: endpointUrl,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    maxAttempts: 1,
  });
}
