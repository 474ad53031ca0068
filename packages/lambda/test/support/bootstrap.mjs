// Plays the part of Lambda's own runtime client: loads the handler, then asks for one invocation
// after another and reports the outcome of each. Written from the description of the Runtime API.
const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime`;

const post = (path, body) =>
  fetch(`${api}/${path}`, { method: "POST", body: JSON.stringify(body) ?? "null" });

const catchError = (error) => ({
  errorType: error?.name ?? typeof error,
  errorMessage: error?.message ?? String(error),
  trace: String(error?.stack ?? "").split("\n"),
});

let handler;
try {
  const [file, name] = process.env["_HANDLER"].split(".");
  ({ [name]: handler } = await import(`${process.env.LAMBDA_TASK_ROOT}/${file}.mjs`));
} catch (error) {
  await post("init/error", catchError(error));
  process.exit(1);
}

for (;;) {
  const next = await fetch(`${api}/invocation/next`);
  const id = next.headers.get("lambda-runtime-aws-request-id");
  try {
    const deadlineMs = Number(next.headers.get("lambda-runtime-deadline-ms"));
    const getRemainingTimeInMillis = () => deadlineMs - Date.now();
    const context = { awsRequestId: id, getRemainingTimeInMillis };
    const result = await handler(await next.json(), context);
    await post(`invocation/${id}/response`, result);
  } catch (error) {
    await post(`invocation/${id}/error`, catchError(error));
  }
}
