import { createRequire } from "node:module";
import type * as Api from "@opentelemetry/api";
import { InfrastructureError } from "../core/errors.ts";

/**
 * The API of OpenTelemetry, an optional peer. It is loaded with `require`, so that the error of a
 * project without it can say what to install. All copies of the API in a process share the
 * providers.
 */
export const api: typeof Api = loadApi();

function loadApi(): typeof Api {
  try {
    return createRequire(import.meta.url)("@opentelemetry/api") as typeof Api;
  } catch (cause) {
    if ((cause as { readonly code?: unknown }).code !== "MODULE_NOT_FOUND") throw cause;
    throw new InfrastructureError(
      "ERR_LIMITER_CLIENT_MISSING",
      "zae-limiter/otel needs the API of OpenTelemetry: npm install @opentelemetry/api",
      { cause },
    );
  }
}
