import { answer } from "./essentials.mjs";

export default { fetch: answer };
