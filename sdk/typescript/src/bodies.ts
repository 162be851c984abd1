// Bodies of requests, checked as the API checks them: a part of the fake for tests.

/** An object of JSON. */
export type Fields = Record<string, any>;

/** The checks of an object. unknown: the status of the refusal of keys that it does not have. */
export interface Body {
  fields: Record<string, Field>;
  unknown: number;
  refused?: Record<string, string>;
  between?: Between[];
  in_order?: [string, string];
  stamps?: Record<string, string>;
}

type Type =
  | "id" | "integer" | "number" | "boolean" | "string" | "enum" | "destination" | "date" | "instant" | "array" | "object";

interface Field {
  type: Type;
  required?: boolean;
  optional?: boolean;
  values?: string[];
  longest?: number;
  over?: number;
  blank?: boolean;
  lowest?: number;
  highest?: number;
  items?: Field;
  object?: Body;
  contains?: { equal: Fields; filled: string[] };
  /** Those of the field alone, by what is wrong. */
  codes?: { empty?: string; value?: string };
}

/** A field that a body has only where another one has this value; `words`: how many it then needs. */
interface Between {
  field: string;
  with: string;
  value: string;
  words: number;
  status: number;
}

/** The API would refuse it. */
export class Refused {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    this.status = status;
    this.code = code;
    this.message = message;
    this.headers = headers;
  }
}

/** The refusal of a value. */
export function invalid(message: string, param = "", status = 400, code = "invalid_request"): Refused {
  return new Refused(status, code, message, param ? { "Service-Error-Param": param } : {});
}

/** The body of a request, without its nulls. Throws Refused. */
export function checked(schema: Body, raw: ArrayBuffer): Fields {
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(raw));
  } catch {
    throw invalid("The body must be one JSON object in UTF-8: it can't be parsed.");
  }
  if (!isObject(body)) throw invalid("The body must be one JSON object in UTF-8: it is of another type.");
  checkObject(schema, body);
  for (const rule of schema.between ?? []) checkBetween(rule, body);
  const [first, last] = schema.in_order ?? ["", ""];
  if (body[first] && body[last] && body[last] < body[first]) {
    throw invalid(`${last} must not be before ${first}.`, last, 422);
  }
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

function checkObject(schema: Body, body: Fields, prefix = ""): void {
  for (const [name, sentence] of Object.entries(schema.refused ?? {})) {
    if (Object.hasOwn(body, name)) throw invalid(sentence, name, 422);
  }
  if (!Object.keys(body).every((name) => Object.hasOwn(schema.fields, name))) {
    const within = prefix.replace(/\.$/, "");
    const names = Object.keys(schema.fields).join(", ");
    throw invalid(`${within || "The body"} may hold these keys only: ${names}.`, within, schema.unknown);
  }
  for (const [name, field] of Object.entries(schema.fields)) {
    const value = body[name] ?? null;
    if (value !== null) check(field, value, prefix + name);
    else if (field.required) throw invalid(`${prefix}${name} is required.`, prefix + name);
    else if (field.codes?.empty && !field.optional) throw invalid(`${name} names no event.`, name, 422, field.codes.empty);
  }
}

function check(field: Field, value: unknown, name: string): void {
  const [fits, expected] = TYPES[field.type];
  if (!fits(value)) throw invalid(`${name} must be ${expected}.`, name);
  if (typeof value === "string") checkText(field, value, name);
  if (field.object) checkObject(field.object, value as Fields, `${name}.`);
  if (Array.isArray(value)) checkEntries(field, value, name);
}

function checkText(field: Field, value: string, name: string): void {
  const { values, longest = Infinity } = field;
  const length = [...value].length;
  if (values && !values.includes(value)) throw invalid(`${name} must be one of: ${values.join(", ")}.`, name, 422);
  if (field.type === "destination") {
    const [host = ""] = value.replace("https://", "").split(/[/:?]/);
    if (length > longest || !DESTINATION.test(value) || PRIVATE.test(host)) {
      throw invalid(`${name} must be an https URL on port 443 with a public host.`, name, 422, field.codes?.value);
    }
  } else if (length > longest) {
    throw invalid(`${name} must be at most ${longest} characters.`, name, field.over);
  }
  if (field.blank === false && !value.trim()) throw invalid(`${name} must not be blank.`, name);
}

function checkEntries(field: Field, entries: unknown[], name: string): void {
  const { lowest = 0, highest = Infinity, codes = {}, contains } = field;
  if (entries.length < lowest || entries.length > highest) {
    if (codes.empty) throw invalid(`${name} names no event.`, name, 422, codes.empty);
    throw invalid(`${name} must have from ${lowest} to ${highest} entries.`, name);
  }
  for (const [index, entry] of entries.entries()) {
    try {
      check(field.items!, entry, `${name}[${index}]`);
    } catch (refused) {
      if (!(refused instanceof Refused) || refused.status !== 422 || !codes.value) throw refused;
      throw invalid(refused.message, name, 422, codes.value);
    }
  }
  const isContained = (entry: Fields): boolean =>
    Object.entries(contains!.equal).every(([key, value]) => entry[key] === value) &&
    contains!.filled.every((key) => (entry[key] ?? "").trim());
  if (contains && !(entries as Fields[]).some(isContained)) {
    throw invalid(`${name} must have an entry with ${contains.filled.join(", ")}.`, name, 422);
  }
}

function checkBetween(rule: Between, body: Fields): void {
  const { field: name, words } = rule;
  const value = body[name] ?? null;
  const condition = `${rule.with} ${rule.value}`;
  if (body[rule.with] !== rule.value) {
    if (value !== null) throw invalid(`${name} is accepted with ${condition} alone; leave it out.`, name, rule.status);
  } else if (words && value === null) {
    throw invalid(`${name} is required with ${condition}.`, name, 422);
  } else if (words && value.split(/\s+/).filter(Boolean).length < words) {
    throw invalid(`${name} must have ${words} or more words.`, name, 422);
  }
}

/** Whether a text names an instant, with its offset from UTC. */
export function isInstant(value: unknown): boolean {
  return typeof value === "string" && isDate(value.slice(0, 10)) && INSTANT.test(value.slice(10)) &&
    !Number.isNaN(Date.parse(value));
}

function isDate(value: unknown): boolean {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d$/.test(value)) return false;
  const at = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(value); // no 30 February
}

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const DESTINATION = /^https:\/\/(?=[^/?#]*\.)(?!\d+\.\d+\.\d+\.\d+)[^/?#:@\s[\]]+(:443)?([/?][^\s#]*)?$/;
const PRIVATE = /(^|\.)(localhost|local|internal|localdomain)$/;
const INSTANT = /^[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)$/;
const isText = (value: unknown): boolean => typeof value === "string";
// What fits a type, and how a refusal names it.
const TYPES: Record<Type, [fits: (value: unknown) => boolean, name: string]> = {
  id: [Number.isInteger, "an integer"],
  integer: [Number.isInteger, "an integer"],
  number: [(value) => typeof value === "number", "a number"],
  boolean: [(value) => typeof value === "boolean", "true or false"],
  string: [isText, "a string"],
  enum: [isText, "a string"],
  destination: [isText, "a string"],
  date: [isDate, "a date as YYYY-MM-DD"],
  instant: [isInstant, "a date-time in ISO 8601 with a UTC offset"],
  array: [Array.isArray, "an array"],
  object: [isObject, "an object"],
};
