/**
 * CPU time of servers that a benchmark has started, from the system's own accounts (Linux).
 *
 * @module
 */
import { readFileSync } from "node:fs";

/** What a server has used, with all its processes: those that live and those that have ended. Seconds. */
export function cpuOfServer(pid: number): number {
  let ticks = sum(statOf(pid).slice(11, 15));
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = statOf(Number(name));
    if (Number(stat[1]) === pid) ticks += sum(stat.slice(11, 13));
  }
  return ticks / 100;
}

/** Parent of a process. */
export function parentOf(pid: number): number {
  return Number(statOf(pid)[1]);
}

/** What the system says of a process behind its name: state, parent and so on. */
function statOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
  } catch {
    return []; // it has ended meanwhile
  }
}

function sum(numbers: readonly string[]): number {
  return numbers.reduce((total, text) => total + Number(text), 0);
}
