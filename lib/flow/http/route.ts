/**
 * What a call is: a row of the table of routes, from which the server, its checks and the OpenAPI document come.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import type { FlowClient } from "../client/mod.ts";
import type { FlowEngine } from "../engine/mod.ts";
import type { RemoteJobs } from "../engine/remote.ts";
import type { FieldsOf, Schema, ValuesOf } from "./fields.ts";

/** What calls work with. */
export interface Scene {
  readonly client: FlowClient;
  readonly engine: FlowEngine;
  readonly jobs: RemoteJobs;
  readonly clock: Clock;
  /** Aborted when the server drains: whoever waits is answered. */
  readonly draining: AbortSignal;
}

/** One call of a route. */
export interface CallOf<P extends string, Q extends FieldsOf, B extends FieldsOf> {
  /** Names in the path. */
  readonly path: Readonly<Record<P, string>>;
  readonly query: ValuesOf<Q>;
  readonly body: ValuesOf<B>;
  readonly headers: Headers;
  /** Aborted when the caller has gone, or the server drains. */
  readonly signal: AbortSignal;
  /** False where too many calls wait already: this one is to be answered at once. */
  readonly mayWait: boolean;
  /** The call goes on when it is answered; what it returns is called at its end. Only for routes that wait. */
  goesOn(): () => void;
}

/** An answer with another status than 200. */
export class Reply {
  constructor(readonly status: number, readonly value: unknown) {}
}

/** Names in a path: `/v1/jobs/{id}` has `id`. */
type NamesIn<T extends string> = T extends `${string}{${infer N}}${infer R}` ? N | NamesIn<R> : never;

/** A route, as it is declared. */
export interface RouteOf<P extends string, Q extends FieldsOf, B extends FieldsOf> {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: P;
  readonly tag: "executions" | "flows" | "jobs" | "dead letters" | "server";
  readonly summary: string;
  readonly query?: Q;
  /** Fields of the body; a route without a body takes none. */
  readonly body?: B;
  /** What an answer holds. */
  readonly answers: { readonly status?: number; readonly summary: string; readonly schema?: Schema };
  /**
   * Whether it may take long: there is a bound on how many of those are under way. Beyond it a call is refused, or (`if-room`)
   * does not wait.
   */
  readonly waits?: true | "if-room";
  handle(scene: Scene, call: CallOf<NamesIn<P>, Q, B>): unknown;
}

/** Any route. */
export type Route = Omit<RouteOf<string, FieldsOf, FieldsOf>, "handle"> & {
  handle(scene: Scene, call: CallOf<string, FieldsOf, FieldsOf>): unknown;
};

/** Declares a route, with the types of its fields. */
// deno-lint-ignore ban-types -- no fields
export function route<P extends string, Q extends FieldsOf = {}, B extends FieldsOf = {}>(
  declared: RouteOf<P, Q, B>,
): Route {
  return declared as unknown as Route;
}

/** A route that fits a path, and the names in it. */
export interface Match {
  readonly route: Route;
  readonly names: Readonly<Record<string, string>>;
}

/** Routes by path. */
export class Routes {
  readonly #routes: readonly (readonly [route: Route, parts: readonly string[]])[];

  constructor(routes: readonly Route[]) {
    this.#routes = routes.map((one) => [one, one.path.split("/")]);
  }

  /** Routes that fit a path, whatever their method. */
  at(path: string): Match[] {
    const given = path.split("/");
    return this.#routes.flatMap(([one, parts]) => {
      if (parts.length !== given.length) return [];
      const names: Record<string, string> = {};
      for (const [i, part] of parts.entries()) {
        const name = /^\{(\w+)\}$/.exec(part)?.[1];
        if (name === undefined && part !== given[i]) return [];
        if (name !== undefined) names[name] = given[i]!;
      }
      return [{ route: one, names }];
    });
  }
}
