/** The frame's placeholder: branch `headers` replaces it. */
export function hashedId(prefix: string, secret: string): string {
  return `${prefix}-${secret.length}`;
}

/** The frame's placeholder: branch `headers` replaces it. */
export function idOf(text: string): string {
  return text;
}
