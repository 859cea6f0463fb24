/**
 * Tests of flows on virtual time.
 *
 * @module
 */
export { type Answer, Answers } from "./answers.ts";
export { type FlowTestReport, runFlowTest } from "./run_case.ts";
export { BEGINNING, type Simulated, Simulation } from "./simulator.ts";
export {
  checkFlowTests,
  type Expected,
  type FlowTest,
  type FlowTests,
  OUTCOMES,
  type ParsedFlowTests,
  parseFlowTests,
  type TestCommand,
} from "./test_document.ts";
