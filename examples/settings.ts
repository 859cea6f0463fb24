/**
 * What the examples with servers take from the environment, and how they are stopped.
 */

/** A setting by the name of its variable. */
export function setting(name: string, fallback: string): string {
  return Deno.env.get(name) || fallback;
}

/** Aborted with the first Ctrl-C: the pipeline then drains and takes a last checkpoint. */
export function untilInterrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => controller.abort());
  }
  return controller.signal;
}
