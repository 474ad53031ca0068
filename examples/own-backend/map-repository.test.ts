import { describe, it } from "vitest";
import { repositoryContract } from "@zae-limiter/contract";
import { MapRepository } from "./map-repository.ts";

repositoryContract("MapRepository", async (clock) => new MapRepository({ clock }), {
  describe,
  it,
});
