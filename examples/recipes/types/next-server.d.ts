/**
 * What the recipe for Next.js uses of it. Next.js itself is not installed: with React it takes 340
 * MB.
 */
declare module "next/server" {
  export function after(task: Promise<unknown> | (() => unknown)): void;
}
