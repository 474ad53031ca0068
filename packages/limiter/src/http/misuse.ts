// Everybody who warns can import it from there: `stores/` and `identity/` may not import `http/`.
export { forgetWarnings, warnOnce, type MisuseCode } from "./identity/misuse.ts";
