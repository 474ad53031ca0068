/* What `zae-limiter/dynamodb` has for `@zae-limiter/infra` to build its template from (ADR 018); declared.d.ts has the rest. */

declare module "declared/zae-limiter/dynamodb" {
  export interface IndexDeclaration {
    readonly IndexName: string;
    readonly KeySchema: readonly {
      readonly AttributeName: string;
      readonly KeyType: "HASH" | "RANGE";
    }[];
    readonly Projection: { readonly ProjectionType: "ALL" | "KEYS_ONLY" };
  }
  export interface TableDeclaration {
    readonly BillingMode: "PAY_PER_REQUEST";
    readonly KeySchema: IndexDeclaration["KeySchema"];
    readonly AttributeDefinitions: readonly {
      readonly AttributeName: string;
      readonly AttributeType: "S";
    }[];
    readonly GlobalSecondaryIndexes: readonly IndexDeclaration[];
    readonly StreamSpecification?: {
      readonly StreamEnabled: true;
      readonly StreamViewType: "NEW_AND_OLD_IMAGES";
    };
  }
  export function tableDeclaration(options: { readonly stream: boolean }): TableDeclaration;
  export const TTL_ATTRIBUTE: "ttl";
  export const SCHEMA_VERSION: string;
}
