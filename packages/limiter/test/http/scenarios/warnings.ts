import { onTestFinished } from "vitest";
import { forgetWarnings } from "../../../src/http/misuse.ts";

/** The codes and texts of the warnings that the process emits until the end of the test. */
export function collectWarnings(): {
  readonly code: string | undefined;
  readonly message: string;
}[] {
  forgetWarnings();
  const warnings: { code: string | undefined; message: string }[] = [];
  const onWarning = (warning: Error & { readonly code?: string }): void => {
    warnings.push({ code: warning.code, message: warning.message });
  };
  process.on("warning", onWarning);
  onTestFinished(() => {
    process.off("warning", onWarning);
    forgetWarnings();
  });
  return warnings;
}
