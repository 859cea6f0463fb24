/**
 * `mailer run`.
 *
 * R1 Nothing is opened before every document has been found valid and built.
 * R2 Standard output belongs to the results.
 * R3 No secret of any of the documents is shown in anything that is said of one of them.
 * R4 With `--json` each line on standard error is a JSON object.
 *
 * @module
 */
import { codeOf } from "../../errors.ts";
import { stringifyJson } from "../../json.ts";
import type { Env } from "../../stream/env.ts";
import { buildWorkflow } from "../../workflow/build/mod.ts";
import { type Connectors, connectorTypes } from "../../workflow/registry.ts";
import { maskOf, type WorkflowSpec } from "../../workflow/mod.ts";
import type { Command, Flags } from "../command.ts";
import { dataDirOf, printProblems, readWorkflows, type WorkflowFile } from "../documents.ts";
import { type ErrorDetail, errorJson, errorText } from "../error_text.ts";
import { EXIT, type ExitCode, exitCodeOf } from "../exit_code.ts";
import type { Host } from "../host.ts";
import { type Closing, closingJson, closingText } from "./closing.ts";
import { type GroupEnd, type GroupOptions, RunGroup } from "./group.ts";
import { lineLogger } from "./log.ts";
import type { MetricsServer } from "./metrics_server.ts";
import { Progress, progressJson } from "./progress.ts";
import { Screen } from "./screen.ts";

/** Time between two looks at the progress, ms: on a terminal, and where each is a line of its own. */
const REDRAW_EVERY = 250;
const LINE_EVERY = 2000;

interface Pipeline {
  readonly spec: WorkflowSpec;
  readonly env: Env;
}

/** Runs workflows until all are over. */
export const run: Command = async ({ args, flags }, host) => {
  const documents = await readWorkflows(args, host);
  const problems = documents.flatMap((document) => document.problems);
  if (problems.length > 0) {
    if (flags.json === true) printProblems(problems, "json", host.stdout);
    else printProblems(problems, "text", host.stderr);
    return EXIT.usage;
  }
  const connectors = await host.connectors(connectorTypes(documents.map(({ spec }) => spec!)));
  return await new Runner({ documents, connectors, flags, host }).run();
};

class Runner {
  readonly #documents: readonly WorkflowFile[];
  readonly #connectors: Connectors;
  readonly #flags: Flags;
  readonly #host: Host;
  readonly #screen: Screen;
  readonly #mask: (text: string) => string;
  #pipelines: readonly Pipeline[] = [];

  constructor({ documents, connectors, flags, host }: {
    readonly documents: readonly WorkflowFile[];
    readonly connectors: Connectors;
    readonly flags: Flags;
    readonly host: Host;
  }) {
    this.#documents = documents;
    this.#connectors = connectors;
    this.#flags = flags;
    this.#host = host;
    this.#screen = new Screen(host.stderr);
    this.#mask = maskOf(documents.flatMap(({ secrets }) => secrets));
  }

  async run(): Promise<ExitCode> {
    let server: MetricsServer | undefined;
    try {
      this.#pipelines = await this.#build();
      const group: { current?: RunGroup<Pipeline> } = {};
      server = await this.#serve(() => group.current);
      group.current = this.#start();
      return this.#result(await this.#untilOver(group.current));
    } catch (error) {
      this.#complain(error, undefined);
      return exitCodeOf(error);
    } finally {
      await server?.close();
    }
  }

  async #build(): Promise<Pipeline[]> {
    const { clock, loadCode } = this.#host, { bufferSize, logLevel = "warn", json } = this.#flags;
    const built: Pipeline[] = [];
    for (const { spec: parsed, folder } of this.#documents) {
      const spec = parsed!;
      const logger = lineLogger({
        workflow: spec.name,
        level: logLevel,
        form: json === true ? "json" : "text",
        clock,
        mask: this.#mask,
        say: (line) => this.#screen.say(line),
      });
      const env = await buildWorkflow(spec, {
        connectors: this.#connectors,
        loadCode,
        folder,
        clock,
        logger,
        dataDir: dataDirOf(this.#flags, this.#host),
      });
      if (bufferSize !== undefined) env.withBufferSize(bufferSize);
      built.push({ spec, env });
    }
    return built;
  }

  async #serve(group: () => RunGroup<Pipeline> | undefined): Promise<MetricsServer | undefined> {
    const { metrics: address, quiet } = this.#flags;
    if (address === undefined) return undefined;
    const { serveMetrics } = await import("./metrics_server.ts");
    const server = serveMetrics(
      address,
      this.#pipelines.map((pipeline) => ({
        name: pipeline.spec.name,
        metrics: () => pipeline.env.metrics(),
        phase: () => group()?.started.find(({ member }) => member === pipeline)?.handle.status().phase,
      })),
    );
    if (quiet !== true) {
      this.#tell(`metrics: ${server.url}/metrics`, { event: "metrics", url: `${server.url}/metrics` });
    }
    return server;
  }

  #start(): RunGroup<Pipeline> {
    const { verbose, progress, fromSavepoint, stopSavepoint, allowUnmatchedState } = this.#flags;
    const options: GroupOptions = {
      start: {
        ...(fromSavepoint === undefined ? {} : { fromSavepoint }),
        ...(allowUnmatchedState === undefined ? {} : { allowUnmatchedState }),
      },
      ...(stopSavepoint === undefined ? {} : { stopSavepoint }),
    };
    return new RunGroup(this.#pipelines, this.#host.clock, {
      running: ({ spec }) => {
        if (verbose === true || progress === true) {
          this.#tell(`${spec.name}: running`, { event: "running", workflow: spec.name });
        }
      },
      over: ({ spec }, closing) => this.#close(spec.name, closing),
    }, options);
  }

  async #untilOver(group: RunGroup<Pipeline>): Promise<GroupEnd> {
    const forget = this.#host.onInterrupt(() => this.#interrupted(group));
    const watching = this.#watch(group);
    try {
      return await group.end();
    } finally {
      watching.stop();
      forget();
    }
  }

  #interrupted(group: RunGroup<Pipeline>): void {
    const led = group.interrupt();
    if (led === "exit") this.#host.exit(EXIT.interrupted);
    if (this.#flags.quiet === true) return;
    const text = led === "draining" ? "draining; interrupt again to stop at once" : "stopping at once";
    this.#tell(text, { event: led });
  }

  /** Shows progress, and keeps the process alive while pipelines wait for something that does not. */
  #watch(group: RunGroup<Pipeline>): { stop(): void } {
    const { clock } = this.#host, screen = this.#screen;
    const isShown = this.#showsProgress();
    const every = screen.isTerminal && !this.#isJson ? REDRAW_EVERY : LINE_EVERY;
    const views = group.started.map(({ handle }) => ({ handle, progress: new Progress(clock.monotonic()) }));
    const look = () => {
      if (isShown) {
        const now = clock.monotonic(), wallTime = clock.now();
        const lines = views.map(({ handle, progress }) =>
          this.#isJson ? progressJson(handle.status()) : progress.line(handle.status(), now, wallTime)
        );
        const shown = lines.filter((line) => line !== undefined);
        if (screen.isTerminal && !this.#isJson) screen.redraw(shown);
        else for (const line of shown) screen.say(line);
      }
      alarm = clock.schedule(every, look);
    };
    let alarm = clock.schedule(REDRAW_EVERY, look);
    return {
      stop: () => {
        alarm.cancel();
        screen.clear();
      },
    };
  }

  /** By default where people look on, unless results run over the same terminal. */
  #showsProgress(): boolean {
    const { progress, quiet } = this.#flags;
    if (progress === true) return true;
    return quiet !== true && !this.#isJson && this.#screen.isTerminal &&
      !(this.#host.stdout.isTerminal && this.#writesToStdout());
  }

  #writesToStdout(): boolean {
    return this.#pipelines.some(({ spec }) => spec.sinks.some(({ type }) => type === "stdout"));
  }

  #close(name: string, closing: Closing): void {
    const { quiet } = this.#flags, { outcome, error } = closing;
    if (this.#isReaderGone(error)) return;
    if (this.#isJson) {
      const more = error === undefined ? {} : { error: errorJson(error, this.#detail) };
      return this.#screen.say(this.#mask(stringifyJson({ ...closingJson(closing), ...more })));
    }
    if (outcome === "failed") this.#complain(error, this.#pipelines.length > 1 ? name : undefined);
    if (quiet !== true) this.#screen.say(this.#mask(closingText(closing)));
  }

  #result(end: GroupEnd): ExitCode {
    switch (end.kind) {
      case "done":
        return EXIT.done;
      case "aborted":
        return EXIT.interrupted;
      case "failed":
        return this.#isReaderGone(end.error) ? EXIT.done : exitCodeOf(end.error);
    }
  }

  /** Whether all that happened is that nobody reads standard output any more, and nothing else was to be written. */
  #isReaderGone(error: unknown): boolean {
    return codeOf(error) === "stdout_closed" &&
      this.#pipelines.every(({ spec }) => spec.sinks.every(({ type }) => type === "stdout"));
  }

  #complain(error: unknown, about: string | undefined): void {
    this.#tell(errorText(error, { about, detail: this.#detail }), {
      event: "failed",
      error: errorJson(error, this.#detail),
    });
  }

  get #isJson(): boolean {
    return this.#flags.json === true;
  }
  get #detail(): ErrorDetail {
    return this.#flags.debug === true ? "stack" : "message";
  }

  /** Says something on standard error, to people or to a program. */
  #tell(text: string, event: { readonly event: string; readonly [field: string]: unknown }): void {
    this.#screen.say(this.#mask(this.#isJson ? stringifyJson(event) : text));
  }
}
