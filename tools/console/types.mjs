// Writes the types of the API's schemas, for the console's JSDoc: types.mjs docs/openapi.json OUT.d.ts
// The schemas use a part of JSON Schema: references, objects, lists, enums, oneOf, allOf and nullable types.

import { readFileSync, writeFileSync } from 'node:fs';

const [, , source, target] = process.argv;
const { schemas } = JSON.parse(readFileSync(source, 'utf8')).components;

/** The TypeScript type of a schema. */
function type(schema) {
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.oneOf) return schema.oneOf.map(type).join(' | ');
  if (schema.allOf) return schema.allOf.map((one) => `(${type(one)})`).join(' & ');
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(' | ');
  const types = [schema.type].flat();
  return types.map((one) => plain(one, schema)).join(' | ');
}

function plain(name, schema) {
  switch (name) {
    case 'null':
      return 'null';
    case 'boolean':
      return 'boolean';
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
      return 'string';
    case 'array':
      return `Array<${schema.items && Object.keys(schema.items).length ? type(schema.items) : 'unknown'}>`;
    case 'object':
      return object(schema);
    default:
      return 'unknown';
  }
}

function object(schema) {
  if (!schema.properties)
    return schema.additionalProperties
      ? `Record<string, ${type(schema.additionalProperties)}>`
      : 'Record<string, unknown>';
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(
    ([name, field]) =>
      `  ${comment(field)}${JSON.stringify(name)}${required.has(name) ? '' : '?'}: ${type(field)};`,
  );
  return `{\n${fields.join('\n')}\n}`;
}

const comment = (schema) =>
  schema.description ? `/** ${schema.description.replaceAll('*/', '*').replaceAll('\n', ' ')} */ ` : '';

const all = Object.entries(schemas).map(
  ([name, schema]) => `${comment(schema)}export type ${name} = ${type(schema)};`,
);
writeFileSync(target, `// Made from ${source}.\n${all.join('\n')}\n`);
