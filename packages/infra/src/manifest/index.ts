export { manifestYaml } from "./manifest-yaml.ts";
export { yamlDocument } from "./yaml-document.ts";
