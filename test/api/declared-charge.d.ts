// Made by `npm run declare`.

declare module "declared/zae-limiter" {
  export interface ChargeRequest {
    readonly entityId: string;
    readonly resource: string;
    readonly amounts: Amounts;
    readonly also?: Readonly<Record<string, Amounts>>;
  }
}
