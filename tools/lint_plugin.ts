/**
 * Rules of this project that the linter does not know by itself.
 *
 * - `injected-time`: in `lib/` and `connectors/`, time, timers and randomness come from what is handed in (`Clock`, a seed), so
 *   that every behaviour can be tested without sleeping. The few files that touch the real thing say so with an ignore line.
 * - `no-default-export`: everything is exported by name.
 *
 * @module
 */

const TIMERS = new Set(["setTimeout", "setInterval"]);
const MEMBERS = new Map([
  ["Date", new Set(["now"])],
  ["Math", new Set(["random"])],
  ["performance", new Set(["now"])],
  ["crypto", new Set(["randomUUID", "getRandomValues"])],
]);

const isProductCode = (file: string): boolean =>
  /\/(lib|connectors)\//.test(file) && !file.endsWith("_test.ts") && !file.includes("/lib/testing/");

const plugin: Deno.lint.Plugin = {
  name: "mailer",
  rules: {
    "injected-time": {
      create(context) {
        if (!isProductCode(context.filename)) return {};
        const report = (node: Deno.lint.Node, what: string) =>
          context.report({
            node,
            message: `${what} is not used directly here`,
            hint: "take a Clock (lib/clock.ts), or a seed, from whoever calls",
          });
        return {
          CallExpression(node) {
            if (node.callee.type === "Identifier" && TIMERS.has(node.callee.name)) {
              report(node, node.callee.name);
            }
          },
          MemberExpression(node) {
            if (node.object.type !== "Identifier" || node.property.type !== "Identifier") return;
            if (!MEMBERS.get(node.object.name)?.has(node.property.name)) return;
            report(node, `${node.object.name}.${node.property.name}`);
          },
          NewExpression(node) {
            const now = node.callee.type === "Identifier" && node.callee.name === "Date" &&
              node.arguments.length === 0;
            if (now) report(node, "new Date()");
          },
        };
      },
    },
    "no-default-export": {
      create(context) {
        if (!isProductCode(context.filename)) return {};
        return {
          ExportDefaultDeclaration(node) {
            context.report({ node, message: "exports have names", hint: "export it by name" });
          },
        };
      },
    },
  },
};

export default plugin;
