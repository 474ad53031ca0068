import { NO_VALUE, type Template, type Value } from "../cloudformation/template.ts";
import { stackTemplate } from "../template/stack-template.ts";
import { defaultParameters, type Parameters } from "./parameters.ts";

/** A template without parameters and conditions. */
export interface ResolvedTemplate {
  readonly Resources: Template["Resources"];
  readonly Outputs: Template["Outputs"];
}

/**
 * Resolves the template for some parameters, and for pseudo parameters such as `AWS::StackName`:
 * removes what its conditions leave out, and replaces parameters by their values. Parameters that
 * are not given have their defaults.
 */
export function resolveTemplate(given: Parameters): ResolvedTemplate {
  const template = stackTemplate();
  const resolver = new Resolver(template, { ...defaultParameters(), ...given });
  return {
    Resources: resolver.present(template.Resources),
    Outputs: resolver.present(template.Outputs),
  };
}

/** Evaluates the conditions and rules of a template; the functions are those that ours uses. */
export class Resolver {
  readonly #template: Template;
  readonly #values: Parameters;

  constructor(template: Template, values: Parameters) {
    this.#template = template;
    this.#values = values;
  }

  /** The resources or outputs whose conditions hold, resolved. */
  present<Each extends { readonly Condition?: string }>(
    named: Readonly<Record<string, Each>>,
  ): Readonly<Record<string, Each>> {
    const existing = Object.entries(named)
      .filter(([, { Condition }]) => Condition === undefined || this.holds({ Condition }))
      .map(([name, each]) => [name, this.#resolve({ ...each, Condition: NO_VALUE })]);
    return Object.fromEntries(existing) as Record<string, Each>;
  }

  /** Whether a condition holds. */
  holds(condition: Value): boolean {
    const { name, argument } = splitCall(condition);
    const all = argument as readonly Value[];
    if (name === "Condition") return this.holds(this.#template.Conditions[argument as string]!);
    if (name === "Fn::Not") return !this.holds(all[0]!);
    if (name === "Fn::And") return all.every((each) => this.holds(each));
    if (name === "Fn::Or") return all.some((each) => this.holds(each));
    if (name === "Fn::Equals") return this.#resolve(all[0]!) === this.#resolve(all[1]!);
    throw new TypeError(`The template has a condition with ${name}, which is not evaluated.`);
  }

  /** A value without parameters and conditions; undefined for `AWS::NoValue`. */
  #resolve(value: Value): Value | undefined {
    if (typeof value !== "object") return value;
    if (Array.isArray(value))
      return (value as readonly Value[])
        .map((each) => this.#resolve(each))
        .filter((each) => each !== undefined);
    const entries = Object.entries(value);
    const [only, ...others] = entries;
    if (only !== undefined && others.length === 0) {
      const called = this.#call(...only);
      if (called !== NOT_CALLED) return called;
    }
    const fields = entries.map(([name, each]) => [name, this.#resolve(each)] as const);
    return Object.fromEntries(fields.filter(([, each]) => each !== undefined)) as Value;
  }

  #call(name: string, argument: Value): Value | undefined | typeof NOT_CALLED {
    if (name === "Ref" && argument === "AWS::NoValue") return undefined;
    if (name === "Ref") return this.#value(argument as string) ?? NOT_CALLED;
    if (name === "Fn::If") {
      const [condition, value, otherwise] = argument as readonly [string, Value, Value];
      return this.#resolve(this.holds({ Condition: condition }) ? value : otherwise);
    }
    if (name === "Fn::Sub" && typeof argument === "string") return this.#substitute(argument);
    if (name === "Fn::Select") {
      const [index, list] = argument as readonly [number, Value];
      return (this.#resolve(list) as readonly Value[])[index];
    }
    if (name === "Fn::Split") {
      const [separator, text] = argument as readonly [string, Value];
      return (this.#resolve(text) as string).split(separator);
    }
    return NOT_CALLED;
  }

  #substitute(text: string): Value {
    const known = text.replaceAll(/\$\{([^}]+)\}/g, (whole, name: string) => {
      const value = this.#value(name);
      return value === undefined ? whole : String(value);
    });
    return known.includes("${") ? { "Fn::Sub": known } : known;
  }

  #value(name: string): string | number | undefined {
    const value = this.#values[name];
    return this.#template.Parameters[name]?.Type === "Number" ? Number(value) : value;
  }
}

const NOT_CALLED = Symbol("no function that is resolved");

function splitCall(value: Value): { readonly name: string; readonly argument: Value } {
  const [name, argument] = Object.entries(value)[0]!;
  return { name, argument: argument as Value };
}
