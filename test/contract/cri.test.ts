import { describe, expect } from 'vitest'
import { chooseContainerds } from '../support/containerd-versions.ts'
import { startContainerdTarget, startFakeTarget } from '../support/contract-target.ts'
import { containerCases } from './container-cases.ts'
import { Contract } from './contract.ts'
import { identityCases } from './identity-cases.ts'
import { restartCases } from './restart-cases.ts'
import { sandboxCases } from './sandbox-cases.ts'

/**
 * What podd relies on in a runtime. The same cases run against the fake runtime and against real ones, so
 * that a test that uses the fake says something about the world.
 */
function allCases(contract: Contract): void {
  contract.register()
  identityCases(contract)
  sandboxCases(contract)
  containerCases(contract)
  restartCases(contract)

  contract.holds('every RPC of the client has been called', async () => {
    const methods = [...Object.keys(contract.client.runtime), ...Object.keys(contract.client.images)]
    const called = [...contract.called].map((name) => `${name.charAt(0).toLowerCase()}${name.slice(1)}`)
    expect(called.sort()).toEqual(methods.sort())
  })
}

describe.each(['1.6', '2.1'] as const)('the fake runtime as containerd %s', (release) => {
  allCases(new Contract(`the fake runtime as containerd ${release}`, () => startFakeTarget(release)))
})

const choice = chooseContainerds()

if (choice.kind === 'use') {
  describe.each(choice.installs)('containerd $version', (install) => {
    allCases(new Contract(`containerd ${install.version}`, () => startContainerdTarget(install)))
  })
} else {
  describe.skipIf(true)(`containerd (skipped: ${choice.reason})`, () => {
    allCases(new Contract('containerd', () => Promise.reject(new Error(choice.reason))))
  })
}
