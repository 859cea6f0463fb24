/**
 * Work on many items, some of them at a time.
 *
 * @module
 */

/** Does `work` for every item, at most `most` at a time; the first error ends it, once what is under way has ended. */
export async function inParallel<T, R>(
  most: number,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0, failed = false;
  const worker = async (): Promise<void> => {
    while (next < items.length && !failed) {
      const i = next++;
      try {
        results[i] = await work(items[i]!);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: Math.min(most, items.length) }, worker));
  for (const outcome of workers) if (outcome.status === "rejected") throw outcome.reason;
  return results;
}
