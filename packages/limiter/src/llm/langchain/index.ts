export { limitCallbacks, type LangChainCall, type LangChainHandler } from "./limit-callbacks.ts";
