export { CHANNELS } from "./channels.ts";
export type { AcquireMessage, ChargeMessage, EndedAmounts, EndMessage } from "./messages.ts";
