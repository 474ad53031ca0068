import { Construct } from "constructs";

/** The stack of zae-limiter as a part of a CDK app. */
export class ZaeLimiter extends Construct {}
