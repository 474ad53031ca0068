/** A server whose middleware allows two requests a day, and what three requests are told. */
const BODY = `
  const repository = new MemoryRepository();
  await repository.setSystemDefaults([Limit.perDay("rpm", 2)]);
  const limiter = new RateLimiter({ repository });
  const app = express();
  app.use(limitRequests({ limiter, entity: (request) => clientAddress(request), resource: "web", consume: { rpm: 1 } }));
  app.get("/", (_request, response) => response.send("hello"));
  const server = app.listen(0, async () => {
    for (let sent = 0; sent < 3; sent += 1) {
      const { status, headers } = await fetch("http://127.0.0.1:" + server.address().port);
      console.log(status, headers.get("ratelimit"), headers.get("retry-after"));
    }
    server.close();
    server.closeAllConnections();
  });`;

const MODULES = [
  ["express", "express"],
  ["{ Limit, RateLimiter }", "zae-limiter"],
  ["{ limitRequests }", "zae-limiter/express"],
  ["{ clientAddress }", "zae-limiter/http"],
  ["{ MemoryRepository }", "zae-limiter/memory"],
] as const;

/** The same program as an ES module and as a CommonJS module, by the names of their files. */
export const EXPRESS_SERVERS: Readonly<Record<string, string>> = {
  "server.mjs": `${MODULES.map(([what, from]) => `import ${what} from "${from}";`).join("")}${BODY}`,
  // A CommonJS module cannot await at its top.
  "server.cjs": `${MODULES.map(([what, from]) => `const ${what} = require("${from}");`).join("")}
    (async () => {${BODY}})();`,
};

/** What each of them prints: two grants and a refusal. */
export const EXPRESS_ANSWERS =
  /^200 "rpm";r=1;t=43200 null\n200 "rpm";r=0;t=43200 null\n429 "rpm";r=0;t=\d+ \d+\n$/;
