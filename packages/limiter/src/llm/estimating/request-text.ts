/*
 * Finds the text of a request. The bodies of OpenAI's and Anthropic's APIs, the prompts of the AI
 * SDK and the messages of LangChain differ only in names. Everything counts as text, unless it is
 * known to be a label or a file. So an unknown part counts too much rather than not at all.
 *
 * Nothing is serialized: JSON would include labels and base64, and cost a copy of the request.
 */

/** Receives the texts and files of a request, in no particular order. */
export interface RequestReader {
  text(text: string): void;
  file(): void;
}

/** A part of a request. `isJson`: the model reads all of it, including keys and numbers. */
export interface RequestPart {
  readonly value: unknown;
  readonly isJson: boolean;
}

/**
 * The most objects that are read of a request. Messages that fill a window of a million tokens have
 * fewer, while shared objects can stand for more than any memory holds.
 */
const MOST_OBJECTS = 250_000;

/** How deep requests are read. The parsers of providers refuse JSON that is nested deeper. */
const MOST_DEPTH = 1_000;

/**
 * Stands for one token in a list of tokens: it has four bytes, and is one token in most tokenizers.
 */
const TOKEN = " the";

/** Names of values that the model does not read, or that are counted as part of a file. */
const LABELS = names(
  "role type source_type object status model index phase caller",
  "id tool_call_id toolCallId tool_use_id call_id approvalId item_id",
  "approval_request_id server_label file_id fileId container container_id",
  "media_type mediaType mime_type mimeType format detail filename",
  "url file_url cache_control providerOptions providerMetadata metadata",
  // Providers do not count citations. Encrypted content is not read as it stands.
  "citations annotations logprobs signature encrypted_content page_age",
);

/** Names of objects that the model reads as JSON. */
const JSON_NAMES = names("input args arguments tools parameters input_schema inputSchema schema");

/** Types of parts that are files. */
const FILE_TYPES = names(
  "image image_url input_image image_generation_call computer_screenshot",
  "audio input_audio video media document container_upload",
  "file input_file reasoning-file file-data file-url file-id",
  "file-reference image-data image-url image-file-id image-file-reference",
);

/** Names of the parts of a file. */
const FILE_NAMES = names("data source file file_data image image_url audio input_audio video");

/** Types of sources of files that are text after all. */
const TEXT_SOURCES = names("text content");

/** Types of the AI SDK's tool results whose value is JSON. */
const JSON_RESULTS = names("json error-json");

/** Reads the texts and files of a request. It never throws for values of the wrong type. */
export function readRequest(parts: readonly RequestPart[], reader: RequestReader): void {
  const walk = new Walk(reader);
  for (const { value, isJson } of parts) walk.visit(value, isJson, 0);
  walk.run();
}

type Fields = Readonly<Record<string, unknown>>;

/** An object that is still to be read. */
interface Step {
  readonly value: object;
  readonly isJson: boolean;
  readonly depth: number;
}

/** A walk with its own stack, because little of the real one may be left. */
class Walk {
  readonly #reader: RequestReader;
  readonly #steps: Step[] = [];
  /**
   * The objects from the request down to the one that is read, to skip those that contain
   * themselves. A set of them takes twice as long: every object would need a hash.
   */
  readonly #path: object[] = [];

  constructor(reader: RequestReader) {
    this.#reader = reader;
  }

  run(): void {
    for (let read = 0; read < MOST_OBJECTS; read += 1) {
      const step = this.#steps.pop();
      if (step === undefined) return;
      const { value, isJson, depth } = step;
      if (depth === MOST_DEPTH || this.#isInItself(value, depth)) continue;
      this.#path[depth] = value;
      if (Array.isArray(value)) this.#list(value, isJson, depth + 1);
      else if (isJson) this.#json(value as Fields, depth + 1);
      else this.#part(value as Fields, depth + 1);
    }
  }

  visit(value: unknown, isJson: boolean, depth: number): void {
    if (typeof value === "string") this.#reader.text(value);
    else if (isBinary(value)) this.#reader.file();
    else if (typeof value === "object" && value !== null)
      this.#steps.push({ value, isJson, depth });
    else if (isJson && (typeof value === "number" || typeof value === "boolean"))
      this.#reader.text(String(value));
  }

  #isInItself(value: object, depth: number): boolean {
    for (let above = 0; above < depth; above += 1) if (this.#path[above] === value) return true;
    return false;
  }

  /** Numbers in a list are tokens, of a prompt or of a text to embed. */
  #list(list: readonly unknown[], isJson: boolean, depth: number): void {
    let tokens = 0;
    for (const value of list) {
      if (typeof value === "number" && !isJson) tokens += 1;
      else this.visit(value, isJson, depth);
    }
    if (tokens > 0) this.#reader.text(TOKEN.repeat(tokens));
  }

  #json(fields: Fields, depth: number): void {
    for (const name of Object.keys(fields)) {
      const value = fields[name];
      if (value === undefined) continue;
      this.#reader.text(name);
      this.visit(value, true, depth);
    }
  }

  #part(part: Fields, depth: number): void {
    const { type } = part;
    let isFile = FILE_TYPES.has(type) && typeof part["text"] !== "string";
    for (const name of Object.keys(part)) {
      const value = part[name];
      if (LABELS.has(name)) continue;
      if (FILE_NAMES.has(name) || (isFile && name === "result")) {
        if (isTextSource(value) || (type === "text" && typeof value === "string")) {
          isFile = false;
          this.visit(value, false, depth);
        } else isFile ||= isFileSource(name, value);
      } else this.visit(value, isJsonValue(name, type), depth);
    }
    if (isFile) this.#reader.file();
  }
}

function names(...lines: readonly string[]): ReadonlySet<unknown> {
  return new Set(lines.flatMap((line) => line.split(" ")));
}

function isJsonValue(name: string, type: unknown): boolean {
  return JSON_NAMES.has(name) || (name === "value" && JSON_RESULTS.has(type));
}

function isTextSource(value: unknown): boolean {
  return TEXT_SOURCES.has((value as Fields | null | undefined)?.["type"]);
}

/** A `source` that is a string is the origin of a search result. */
function isFileSource(name: string, value: unknown): boolean {
  if (typeof value === "string") return name !== "source";
  return typeof value === "object" && value !== null;
}

function isBinary(value: unknown): boolean {
  return (
    ArrayBuffer.isView(value) ||
    value instanceof ArrayBuffer ||
    value instanceof URL ||
    value instanceof Blob
  );
}
