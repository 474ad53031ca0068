/** The part of `process` that warnings go through. */
type Warnings = Pick<NodeJS.Process, "emitWarning">;

/**
 * Holds back the AWS SDK's notice about the version of Node, which would head the output of every
 * command. Other warnings pass. Returns a function that returns the notice, on one line, for
 * `status`.
 */
export function holdNodeNotice(target: Warnings): () => string | undefined {
  const original = target.emitWarning.bind(target);
  let notice: string | undefined;
  target.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    const text = warning instanceof Error ? warning.message : warning;
    const [, paragraph] = /^NodeVersionSupportWarning: ([^]*?)(?:\n\n|$)/.exec(text) ?? [];
    if (paragraph === undefined) Reflect.apply(original, undefined, [warning, ...rest]);
    else notice = paragraph.replaceAll(/\s+/g, " ");
  };
  return () => notice;
}
