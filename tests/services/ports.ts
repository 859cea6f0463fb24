/**
 * Ports of the loopback interface that are free.
 *
 * They lie below those that systems give to outgoing connections (from 32768 on), so that a server that was killed finds its
 * port free when it is started again.
 *
 * @module
 */

const FIRST = 20_000, COUNT = 12_000;
const given = new Set<number>();

/** A free port, never given twice in one process. */
export function freePort(): number {
  for (let tries = 0; tries < 1000; tries++) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (!given.has(port) && isFree(port)) {
      given.add(port);
      return port;
    }
  }
  throw new Error("no free port found on 127.0.0.1");
}

function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}

/** Whether somebody listens there. */
export async function answers(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused) return false;
    throw error;
  }
}
