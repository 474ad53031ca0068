/** Anything that a template may hold: plain values and intrinsic functions. */
export type Value =
  | string
  | number
  | boolean
  | readonly Value[]
  | { readonly [name: string]: Value };

/** Properties of a resource, and other things with names. */
export type Properties = { readonly [name: string]: Value };

/** One resource of a template. */
export interface Resource {
  readonly Type: string;
  readonly Condition?: string;
  readonly DeletionPolicy?: "Retain" | "RetainExceptOnCreate" | "Delete";
  readonly UpdateReplacePolicy?: "Retain" | "Delete";
  readonly Properties: Properties;
}

/** Resources by their logical ids. */
export type Resources = { readonly [logicalId: string]: Resource };

/** A parameter of a template. */
export interface Parameter {
  readonly Type: "String" | "Number";
  readonly Default: string | number;
  readonly Description: string;
  readonly AllowedValues?: readonly (string | number)[];
  readonly AllowedPattern?: string;
  readonly MinValue?: number;
  readonly MaxValue?: number;
}

/** An output of a stack. */
export interface Output {
  readonly Condition?: string;
  readonly Value: Value;
  readonly Export?: { readonly Name: Value };
}

/** A rule that the parameters of a stack must fulfil before anything is done. */
export interface Rule {
  readonly Assertions: readonly { readonly Assert: Value; readonly AssertDescription: string }[];
}

/** A CloudFormation template. */
export interface Template {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  readonly Description: string;
  readonly Parameters: { readonly [name: string]: Parameter };
  readonly Rules: { readonly [name: string]: Rule };
  readonly Conditions: { readonly [name: string]: Value };
  readonly Resources: Resources;
  readonly Outputs: { readonly [name: string]: Output };
}

/** The value of a parameter, or the id of a resource. */
export function ref(name: string): Value {
  return { Ref: name };
}

/** An attribute of a resource. */
export function getAtt(resource: string, attribute: string): Value {
  return { "Fn::GetAtt": [resource, attribute] };
}

/** A text with `${…}` in it: parameters, names of resources, and what AWS knows. */
export function sub(text: string): Value {
  return { "Fn::Sub": text };
}

/** One value or the other. */
export function when(condition: string, value: Value, otherwise: Value = NO_VALUE): Value {
  return { "Fn::If": [condition, value, otherwise] };
}

/** Leaves a property out. */
export const NO_VALUE: Value = { Ref: "AWS::NoValue" };

/** Whether two values are equal; for conditions and rules. */
export function equals(left: Value, right: Value): Value {
  return { "Fn::Equals": [left, right] };
}

/** The opposite of a condition. */
export function not(condition: Value): Value {
  return { "Fn::Not": [condition] };
}

/** Whether all conditions hold. */
export function and(...conditions: readonly Value[]): Value {
  return { "Fn::And": conditions };
}

/** Whether one of the conditions holds. */
export function or(...conditions: readonly Value[]): Value {
  return { "Fn::Or": conditions };
}

/** Another condition, by its name. */
export function conditionRef(name: string): Value {
  return { Condition: name };
}
