/**
 * Flows over HTTP.
 *
 * @module
 */
export { type FlowServer, serveFlows, type ServeOptions } from "./serve.ts";
export { HttpWorker, type HttpWorkerOptions } from "./worker.ts";
