import { Limit, type RateLimit, type Repository } from "zae-limiter";

/** The project that the keys belong to. Its limits apply to all of them together. */
export const PROJECT = "project-apollo";

/** The keys that call the models. */
export const KEYS = ["key-web", "key-batch", "key-research"] as const;

/** A model: what a call to it costs, and its limits. */
export interface Model {
  readonly name: string;
  /** The range of tokens that callers expect to use. */
  readonly estimate: { readonly least: number; readonly most: number };
  readonly limits: {
    readonly ofKey: readonly RateLimit[];
    readonly ofProject: readonly RateLimit[];
  };
}

/**
 * The load is far above every limit, so that each bucket is drained to the last token; otherwise a
 * limiter that gives too much would go unnoticed. The small model runs out of requests first, the
 * large one out of tokens, and the project runs out of both before its keys do.
 */
export const MODELS: readonly Model[] = [
  {
    name: "model-large",
    estimate: { least: 150, most: 450 },
    limits: {
      ofKey: parseLimits("rpm:600/min:20", "tpm:24000/min:1600"),
      ofProject: parseLimits("rpm:1200/min:40", "tpm:54000/min:3600"),
    },
  },
  {
    name: "model-small",
    estimate: { least: 60, most: 140 },
    limits: {
      ofKey: parseLimits("rpm:240/min:8", "tpm:90000/min:3000"),
      ofProject: parseLimits("rpm:540/min:15", "tpm:300000/min:10000"),
    },
  },
];

/** One bucket of the demo. Every key, and the project, has one for each model. */
export interface DemoBucket {
  readonly entityId: string;
  readonly model: string;
  readonly limits: readonly RateLimit[];
}

/** Every bucket; those of the project come last. */
export const BUCKETS: readonly DemoBucket[] = [
  ...KEYS.flatMap((entityId) =>
    MODELS.map(({ name, limits }) => ({ entityId, model: name, limits: limits.ofKey })),
  ),
  ...MODELS.map(({ name, limits }) => ({
    entityId: PROJECT,
    model: name,
    limits: limits.ofProject,
  })),
];

/** Stores the project, its keys and all limits. */
export async function storeScenario(repository: Repository): Promise<void> {
  await repository.createEntity(PROJECT, { name: "Project Apollo" });
  for (const key of KEYS) await repository.createEntity(key, { parentId: PROJECT, cascade: true });
  for (const { name, limits } of MODELS) {
    await repository.setResourceDefaults(name, limits.ofKey);
    await repository.setLimits(PROJECT, limits.ofProject, { resource: name });
  }
}

function parseLimits(...texts: readonly string[]): readonly RateLimit[] {
  return texts.map((text) => Limit.parse(text) as RateLimit);
}
