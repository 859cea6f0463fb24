/**
 * Waits that an abort ends.
 *
 * @module
 */

/**
 * What `pending` gives; rejects with the signal's reason when that comes first. The pending work itself is not ended: its
 * outcome is dropped.
 */
export function abortable<T>(pending: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    pending.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
