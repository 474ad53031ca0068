import { S3Client } from "@aws-sdk/client-s3";
import { isMotoInstalled, startMoto } from "../../../../tools/moto.mjs";
import { startServer, type StartedServer } from "./server-process.ts";

/** Why there is no moto; `undefined` when there is. */
export function whyMotoIsMissing(): string | undefined {
  return isMotoInstalled()
    ? undefined
    : "moto is not installed; run: node tools/moto.mjs (needs Python)";
}

/** Starts a server that speaks S3's language, and waits until it answers. */
export function startS3(): Promise<StartedServer> {
  return startServer((port) => startMoto(port, { stdio: "ignore" }));
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
