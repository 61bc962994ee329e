import { containerCases } from './container-cases.ts'
import type { Contract } from './contract.ts'
import { identityCases } from './identity-cases.ts'
import { restartCases } from './restart-cases.ts'
import { sandboxCases } from './sandbox-cases.ts'

/**
 * What podd relies on in a runtime. The same cases run against the fake runtime and against real ones, so
 * that a test that uses the fake says something about the world.
 */
export function allCases(contract: Contract): void {
  contract.register()
  identityCases(contract)
  sandboxCases(contract)
  containerCases(contract)
  restartCases(contract)
}
