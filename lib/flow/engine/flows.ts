/**
 * The flows of an engine: kept in the store by name and hash, compiled once a process.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import { MailerError } from "../../errors.ts";
import { type CompiledFlow, compileFlow, type Flow, parseFlow } from "../definition/mod.ts";
import type { Definitions, StoredDefinition } from "../store/port.ts";

/** For how long the newest version of a flow is taken to be the newest, ms: another process may have registered one since. */
const LATEST_FOR = 1000;

/** Finds versions of flows. */
export class Flows {
  readonly #definitions: Definitions;
  readonly #clock: Clock;
  /** By name and hash. */
  readonly #compiled = new Map<string, CompiledFlow>();
  readonly #latest = new Map<string, { readonly flow: CompiledFlow; readonly until: number }>();

  constructor(definitions: Definitions, clock: Clock) {
    this.#definitions = definitions;
    this.#clock = clock;
  }

  /** Stores a version, and makes it the newest of its name. The same one again changes nothing. */
  async register(flow: Flow): Promise<CompiledFlow> {
    const { name, hash, canonical } = flow;
    await this.#definitions.put({ name, hash, text: canonical });
    const compiled = this.#keep(name, compileFlow(flow));
    this.#latest.set(name, { flow: compiled, until: this.#clock.monotonic() + LATEST_FOR });
    return compiled;
  }

  /** The newest version of a flow, or a certain one; undefined where there is none. */
  async find(name: string, hash?: string): Promise<CompiledFlow | undefined> {
    if (hash !== undefined) return this.#compiled.get(`${name}@${hash}`) ?? await this.#read(name, hash);
    const latest = this.#latest.get(name), now = this.#clock.monotonic();
    if (latest !== undefined && latest.until > now) return latest.flow;
    const stored = await this.#definitions.get(name);
    if (stored === undefined) return undefined;
    const flow = this.#compiled.get(`${name}@${stored.hash}`) ?? this.#compile(stored);
    this.#latest.set(name, { flow, until: now + LATEST_FOR });
    return flow;
  }

  async #read(name: string, hash: string): Promise<CompiledFlow | undefined> {
    const stored = await this.#definitions.get(name, hash);
    return stored === undefined ? undefined : this.#compile(stored);
  }

  #compile({ name, hash, text }: StoredDefinition): CompiledFlow {
    const { flow, problems } = parseFlow(text, { file: `${name}@${hash}.json` });
    if (flow === undefined || flow.hash !== hash) {
      const why = problems[0]?.message ?? `its hash is ${flow?.hash}`;
      throw new MailerError("flow_damaged", `the stored flow ${name}@${hash} cannot be read: ${why}`, {
        hint: "it was written by another version of Mailer, or the store is damaged",
      });
    }
    return this.#keep(name, compileFlow(flow));
  }

  #keep(name: string, flow: CompiledFlow): CompiledFlow {
    const key = `${name}@${flow.hash}`, known = this.#compiled.get(key);
    if (known !== undefined) return known;
    this.#compiled.set(key, flow);
    return flow;
  }
}
