/** Anything that a template may hold: plain values and intrinsic functions. */
export type Value =
  | string
  | number
  | boolean
  | readonly Value[]
  | { readonly [name: string]: Value };

/** One resource of a template. */
export interface Resource {
  readonly Type: string;
  readonly Condition?: string;
  readonly DependsOn?: string | readonly string[];
  readonly DeletionPolicy?: "Retain" | "Delete";
  readonly UpdateReplacePolicy?: "Retain" | "Delete";
  readonly Properties: { readonly [name: string]: Value };
}

/** A CloudFormation template. */
export interface Template {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  readonly Description: string;
  readonly Metadata?: Value;
  readonly Parameters: { readonly [name: string]: { readonly [name: string]: Value } };
  readonly Rules?: Value;
  readonly Conditions: { readonly [name: string]: Value };
  readonly Resources: { readonly [name: string]: Resource };
  readonly Outputs: { readonly [name: string]: { readonly [name: string]: Value } };
}

/** The value of a parameter, or the id of a resource. */
export function ref(name: string): Value {
  return { Ref: name };
}

/** An attribute of a resource. */
export function getAtt(resource: string, attribute: string): Value {
  return { "Fn::GetAtt": [resource, attribute] };
}

/** A text with `${…}` in it. */
export function sub(text: string): Value {
  return { "Fn::Sub": text };
}
