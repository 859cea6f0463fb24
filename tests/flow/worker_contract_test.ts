/** Workers in other processes, over HTTP, in two languages: both pass the one suite. */
import { fileURLToPath } from "node:url";
import { workerContract } from "../../lib/flow/http/worker_contract.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

workerContract({ name: "TypeScript", command: [Deno.execPath(), "run", "-A", `${here}worker.ts`] });

workerContract({ name: "Python", command: ["python3", `${here}worker.py`], ignore: !hasPython() });

function hasPython(): boolean {
  try {
    return new Deno.Command("python3", { args: ["-c", ""], stdout: "null", stderr: "null" }).outputSync()
      .success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
