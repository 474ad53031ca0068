export { limitsTemplate } from "./limits-template.ts";
export type { LimitsTemplate } from "./limits-template.ts";
export { manifestYaml } from "./manifest-yaml.ts";
export { yamlDocument } from "./yaml-document.ts";
