import { SqliteRepository } from "zae-limiter/sqlite";
import { repositoryContract } from "@zae-limiter/contract";
import { describe, it } from "vitest";
import { temporaryFile } from "../../../test/support/temporary-file.ts";

repositoryContract(
  "SqliteRepository",
  (clock) => SqliteRepository.open(temporaryFile(), { clock }),
  { describe, it },
);
