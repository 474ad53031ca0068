/** Uses the types of Express 5. Those of Express 4 have a test of their own. */
declare module "express-4" {
  export { default } from "express";
}
