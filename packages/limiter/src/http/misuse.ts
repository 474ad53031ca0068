// It lies where everybody who warns may import it: `identity/` and `stores/` know nothing of `http/`.
export { forgetWarnings, warnOnce, type MisuseCode } from "./identity/misuse.ts";
