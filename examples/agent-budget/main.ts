// `npm run agent-budget`: an agent that searches for ever, and a budget that ends it.
import { startProvider } from "../local-provider/dist/provider.js";
