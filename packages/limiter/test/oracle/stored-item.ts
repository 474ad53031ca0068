/**
 * An item as the table holds it, as far as an oracle reads it. Declared anew: an oracle shares
 * nothing with the code that it judges, not even a type.
 */
export type StoredItem = { readonly [attribute: string]: object };
