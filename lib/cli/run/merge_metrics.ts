/**
 * Metrics of several pipelines as one Prometheus text. Each pipeline has a registry of its own, but a scrape may name a metric once.
 *
 * @module
 */

/** Joins texts in the Prometheus format: every metric once, with the samples of all. */
export function mergeMetrics(texts: readonly string[]): string {
  const families = new Map<string, { readonly head: string[]; readonly samples: string[] }>();
  for (const text of texts) {
    let family: { head: string[]; samples: string[] } = { head: [], samples: [] };
    let isFirst = false;
    for (const line of text.split("\n")) {
      const [, kind, name] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? [];
      if (name !== undefined) {
        if (kind === "HELP" || !families.has(name)) isFirst = !families.has(name);
        family = families.get(name) ?? { head: [], samples: [] };
        families.set(name, family);
        if (isFirst) family.head.push(line);
      } else if (line !== "" && !line.startsWith("#")) family.samples.push(line);
    }
  }
  return [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]).map((line) =>
    `${line}\n`
  ).join("");
}
