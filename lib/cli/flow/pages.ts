/**
 * `mailer flow new`, `schema` and `reference`: pages that need nothing.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { flowReference, flowSchema } from "../../flow/definition/mod.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit_code.ts";

/** The JSON Schema of flows. */
export const schema: Command = (_, host) => {
  host.stdout.write(`${JSON.stringify(flowSchema(), undefined, 2)}\n`);
  return EXIT.done;
};

/** The reference of flows. */
export const reference: Command = (_, host) => {
  host.stdout.write(flowReference());
  return EXIT.done;
};

/** A document to begin with. */
export const newFlow: Command = ({ args: [kind = "flow"] }, host) => {
  const text = Object.hasOwn(TEMPLATES, kind) ? TEMPLATES[kind] : undefined;
  if (text === undefined) {
    throw new MailerError("usage", `there is no template "${kind}"`, { hint: "there are flow and test" });
  }
  host.stdout.write(text);
  return EXIT.done;
};

/** The documents by kind. */
export const TEMPLATES: Readonly<Record<string, string>> = {
  flow: `# mailer flow run order.yaml --input '{"order": "o-1", "amount": 120}' --workers workers.ts
name: order
channels:
  log: { reducer: append }                  # what tasks write is kept here
output: "{order: input.order, log: channels.log}"
search_attributes: { order: input.order }   # what executions are found by

nodes:
  - id: reserve
    type: task
    kind: reserve-stock                     # done by a worker of this kind
    retry: { max_attempts: 5, backoff: exponential, delay: 1s, max_delay: 1m, jitter: 0.5 }
    next: large

  - id: large
    type: choice
    rules:
      - { when: input.amount >= 100, to: approval }
      - { default: true, to: charge }

  - id: approval
    type: await                             # mailer flow signal ID approval
    signal: approval
    timeout: 1d
    on_timeout: release
    next: charge

  - id: charge
    type: task
    kind: charge-card
    timeout: 30s
    on_failure: release

  - id: release                             # takes back what was reserved
    type: task
    kind: release-stock
    next: refused

  - { id: refused, type: fail, message: "order {{ input.order }} was not paid" }
`,
  test: `# mailer flow test order.test.yaml
flow: order.yaml
cases:
  - name: a small order is charged at once
    input: { order: o-1, amount: 20 }
    tasks:
      reserve: { output: { reservation: r-9 }, writes: { log: reserved } }
      charge: { output: {}, writes: { log: charged } }
    expect:
      status: completed
      output: { order: o-1, log: [ reserved, charged ] }

  - name: nobody approves
    input: { order: o-2, amount: 500 }
    tasks:
      reserve: { output: { reservation: r-10 } }
      release: { output: {} }
    expect:
      status: failed
      visited: [ reserve, large, approval, release, refused ]
      elapsed: 1d
`,
};
