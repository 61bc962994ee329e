import { describe } from 'vitest'
import { startFakeTarget } from '../../support/contract-target.ts'
import { allCases } from '../../contract/all-cases.ts'
import { Contract } from '../../contract/contract.ts'

describe.each(['1.6', '2.1'] as const)('the fake runtime as containerd %s', (release) => {
  allCases(new Contract(`the fake runtime as containerd ${release}`, () => startFakeTarget(release)))
})
