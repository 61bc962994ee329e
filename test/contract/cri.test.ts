import { describe } from 'vitest'
import { chooseContainerds } from '../support/containerd-versions.ts'
import { startContainerdTarget } from '../support/contract-target.ts'
import { allCases } from './all-cases.ts'
import { Contract } from './contract.ts'

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
