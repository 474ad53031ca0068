import { onTestFinished, vi } from "vitest";
import { forgetWarnings } from "../../../src/warnings/warn-once.ts";

/** A warning of the process. */
interface Warning {
  readonly code: string | undefined;
  readonly message: string;
}

/** Collects the warnings of the process until the end of the test, instead of printing them. */
export function collectWarnings(): readonly Warning[] {
  forgetWarnings();
  const warnings: Warning[] = [];
  const emit = vi.spyOn(process, "emitWarning").mockImplementation((warning, options) => {
    const { code } = (options ?? warning) as unknown as { readonly code?: string };
    warnings.push({ code, message: typeof warning === "string" ? warning : warning.message });
  });
  onTestFinished(() => {
    emit.mockRestore();
    forgetWarnings();
  });
  return warnings;
}

/** Collects unhandled rejections until the end of the test. */
export function collectUnhandled(): readonly unknown[] {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): unknown => unhandled.push(reason);
  process.on("unhandledRejection", onUnhandled);
  onTestFinished(() => void process.off("unhandledRejection", onUnhandled));
  return unhandled;
}
