import { ZaeLimiterEngine } from "./engine/engine.ts";

export type {
  EngineOptions,
  MetricEmitter,
  Phase,
  Script,
  ScriptScenario,
  Step,
  UserContext,
} from "./engine/artillery.ts";
export {
  ZaeLimiterEngine,
  type EngineScript,
  type EngineTools,
  type RunUser,
} from "./engine/engine.ts";
export { LAG_METRIC, type ManagementCall } from "./engine/metrics.ts";
export type { SessionLease } from "./engine/open-lease.ts";
export { RateLimiterSession, type SessionCall, type SessionOptions } from "./engine/session.ts";
export { Ledger, type LedgerOptions } from "./ledger/ledger.ts";
export {
  spiker,
  uniform,
  whale,
  zipf,
  type EntityOptions,
  type EntityPicker,
  type SpikerOptions,
} from "./load/entities.ts";
export {
  constant,
  countArrivals,
  daily,
  ramp,
  SHAPES,
  spike,
  steps,
  type ShapeOptions,
} from "./load/shapes.ts";
export { renderScript, SCENARIOS } from "./scenarios/catalogue.ts";
export type { LoadParameters, Scenario } from "./scenarios/scenario.ts";
export { verifyLedger, type LedgerReport, type VerifyOptions } from "./verify/verify-ledger.ts";

/** Artillery takes the default export of an engine's package. */
export default ZaeLimiterEngine;
