export { instrument, type OtelOptions } from "./instrument.ts";
