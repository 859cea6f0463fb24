import { PAGE_STORES } from "../pages/stores.ts";
import { stateContract } from "./contract.ts";

for (const [name, make] of PAGE_STORES) stateContract(name, make);
