/**
 * What happens to an execution, as server-sent events.
 *
 * S1 The id of an event is the sequence of its decision, and is sent with the last event of a decision only: who comes back with
 *    `Last-Event-ID` goes on behind it, and misses nothing.
 * S2 A stream that has nothing to say says so now and then, so that nobody in between takes it for dead.
 *
 * @module
 */
import type { Clock } from "../../clock.ts";
import { asError } from "../../errors.ts";
import { stringifyJson } from "../../json.ts";
import type { RecordedEvent } from "../client/mod.ts";
import { errorBody } from "./errors.ts";

/** Longest silence, ms. */
const QUIET_MS = 15_000;

/** What a stream of events is made of. */
export interface EventStreamOptions {
  readonly clock: Clock;
  /** The events, until the signal is aborted. */
  events(signal: AbortSignal): AsyncIterable<RecordedEvent>;
  /** Ends it. */
  readonly draining: AbortSignal;
  /** Called once, when it is over. */
  onEnd(): void;
}

/** The answer that carries events until they end, or nobody reads them any more. */
export function eventStream({ clock, events, draining, onEnd }: EventStreamOptions): Response {
  const gone = new AbortController(), encoder = new TextEncoder();
  const end = AbortSignal.any([gone.signal, draining]);
  let quiet: { cancel(): void } | undefined, paused = Promise.withResolvers<void>();
  end.addEventListener("abort", () => paused.resolve(), { once: true });
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const say = (text: string): void => {
        quiet?.cancel();
        if (end.aborted) return;
        controller.enqueue(encoder.encode(text));
        quiet = clock.schedule(QUIET_MS, () => say(": nothing new\n\n"));
      };
      const run = async (): Promise<void> => {
        try {
          say(": here\n\n");
          for await (const event of events(end)) {
            say(eventText(event));
            while ((controller.desiredSize ?? 1) <= 0 && !end.aborted) await paused.promise;
          }
          say("event: end\ndata: {}\n\n");
        } catch (error) {
          if (!end.aborted) say(`event: error\ndata: ${stringifyJson(errorBody(asError(error)))}\n\n`);
        } finally {
          quiet?.cancel();
          onEnd();
          if (!gone.signal.aborted) controller.close();
        }
      };
      void run(); // it ends by itself, and throws nothing
    },
    pull() {
      paused.resolve();
      paused = Promise.withResolvers();
    },
    cancel() {
      gone.abort();
      quiet?.cancel();
      paused.resolve();
    },
  }, { highWaterMark: 64 });
  return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

function eventText(event: RecordedEvent): string {
  const id = event.last ? `id: ${event.seq}\n` : "";
  return `${id}event: ${event.type}\ndata: ${stringifyJson(event)}\n\n`;
}
