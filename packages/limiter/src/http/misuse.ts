// Everybody who warns can import it from there: `stores/` and `identity/` may not import `http/`.
export { forgetWarnings, warnOnce } from "./identity/misuse.ts";
