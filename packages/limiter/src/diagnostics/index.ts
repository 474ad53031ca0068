export { CHANNELS } from "./channels.ts";
export type {
  AcquireMessage,
  ChargeMessage,
  EndedAmounts,
  EndMessage,
  MeteredMessage,
  StreamMessage,
} from "./messages.ts";
