/**
 * Operators that change single fields of a value.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { OperatorComponent } from "../component.ts";
import { type Fields, types } from "../field_type.ts";

const FIELDS: Fields<blocks.FieldsBlock> = {
  fields: {
    type: types.list(types.path(), 1),
    summary: "Fields",
    required: true,
    example: ["id", "customer.id"],
  },
};

/** Only some fields. */
export const selectFields: OperatorComponent = {
  kind: "operator",
  type: "selectFields",
  summary: "Keeps only the named fields; nested ones stay nested, absent ones are left out.",
  carried: true,
  parallel: true,
  example: `id: slim
type: selectFields
selectFields: { fields: [id, customer.id] }
`,
  block: types.block<blocks.FieldsBlock>(FIELDS),
};

/** All but some fields. */
export const dropFields: OperatorComponent = {
  kind: "operator",
  type: "dropFields",
  summary: "Removes the named fields.",
  carried: true,
  parallel: true,
  example: `id: anonymous
type: dropFields
dropFields: { fields: [customer.name] }
`,
  block: types.block<blocks.FieldsBlock>(FIELDS),
};

/** Other names. */
export const renameFields: OperatorComponent = {
  kind: "operator",
  type: "renameFields",
  summary: "Renames fields, in order; an absent one is skipped.",
  carried: true,
  parallel: true,
  example: `id: names
type: renameFields
renameFields: { renames: [ { from: customer.id, to: customer } ] }
`,
  block: types.block<blocks.RenameFieldsBlock>({
    renames: {
      type: types.list(
        types.block<{ from: string; to: string }>({
          from: {
            type: types.path(),
            summary: "Field as it is called",
            required: true,
            example: "customer.id",
          },
          to: {
            type: types.path(),
            summary: "Field as it will be called",
            required: true,
            example: "customer",
          },
        }),
        1,
      ),
      summary: "What to rename",
      required: true,
    },
  }),
};

/** New fields. */
export const setFields: OperatorComponent = {
  kind: "operator",
  type: "setFields",
  summary: "Sets fields to constants or to what expressions give; missing parents are made.",
  carried: true,
  parallel: true,
  example: `id: tag
type: setFields
setFields: { sets: [ { field: meta.version, value: 2 }, { field: total, expr: 'value.qty * value.price' } ] }
`,
  block: types.block<blocks.SetFieldsBlock>({
    sets: {
      type: types.list(
        types.block<blocks.FieldSetting>({
          field: { type: types.path(), summary: "Field to set", required: true, example: "meta.version" },
          value: { type: types.any(), summary: "A constant, any JSON value", example: 2 },
          expr: {
            type: types.expression(),
            summary: "Expression that gives the value",
            example: "value.a + 1",
          },
        }, { rules: [{ kind: "oneOf", groups: [{ required: ["value"] }, { required: ["expr"] }] }] }),
        1,
      ),
      summary: "What to set, in order",
      required: true,
    },
  }),
};
