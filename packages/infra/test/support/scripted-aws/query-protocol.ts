// The Query protocol of CloudFormation and STS: a form goes in, XML comes out.

/** A value of a form or of an answer. */
type Node = string | number | boolean | Date | undefined | readonly Node[] | NodeMap;
export interface NodeMap {
  readonly [name: string]: Node;
}

/** Reads `Tags.member.1.Key=a` into `{ Tags: [{ Key: "a" }] }`. */
export function parsedForm(form: URLSearchParams): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const [path, value] of form) place(root, path.split("."), value);
  return root;
}

function place(target: Record<string, unknown>, path: readonly string[], value: string): void {
  const [name, next, index] = path;
  if (name === undefined) return;
  if (next === undefined) {
    // An empty list is written as its name alone.
    target[name] ??= value;
    return;
  }
  if (next !== "member") {
    place((target[name] ??= {}) as Record<string, unknown>, path.slice(1), value);
    return;
  }
  const list = (Array.isArray(target[name]) ? target[name] : (target[name] = [])) as unknown[];
  const position = Number(index) - 1;
  if (path.length === 3) list[position] = value;
  else {
    list[position] ??= {};
    place(list[position] as Record<string, unknown>, path.slice(3), value);
  }
}

/** The answer to an action. */
export function queryResponse(action: string, result: NodeMap): string {
  return (
    `<${action}Response><${action}Result>${toXml(result)}</${action}Result>` +
    `<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></${action}Response>`
  );
}

/** An error of an action. */
export function queryError(code: string, message: string): string {
  return (
    `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code>` +
    `<Message>${escape(message)}</Message></Error><RequestId>1</RequestId></ErrorResponse>`
  );
}

/** XML of a value; lists are written with `member`. */
function toXml(node: Node): string {
  if (node === undefined) return "";
  if (node instanceof Date) return node.toISOString();
  if (Array.isArray(node)) return node.map((item) => `<member>${toXml(item)}</member>`).join("");
  if (typeof node !== "object") return escape(String(node));
  return Object.entries(node as NodeMap)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `<${name}>${toXml(value)}</${name}>`)
    .join("");
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("\r", "&#13;");
}
