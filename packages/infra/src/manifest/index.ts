export { yamlDocument } from "./yaml-document.ts";
