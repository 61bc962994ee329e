import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { claimSubnet } from '../../../src/runtime/network/pod-network.ts'

const source = join(import.meta.dirname, '../../../src/runtime/network/pod-network.ts')

/** What another process, which ends then, is told. */
function claimElsewhere(subnet: string): string {
  const script = `import { claimSubnet } from ${JSON.stringify(source)}; console.log(await claimSubnet(process.argv[1]))`
  return execFileSync(process.execPath, ['--input-type=module', '-e', script, subnet], { encoding: 'utf8' })
}

it('gives a subnet to one process at a time, until that ends', async () => {
  // Of this process's own: nobody else tests with it.
  const subnet = `test-${process.pid}`
  expect(claimElsewhere(subnet)).toBe('true\n')
  expect(await claimSubnet(subnet)).toBe(true)
  // Asked again, for what it chose couldn't be written down.
  expect(await claimSubnet(subnet)).toBe(true)
  expect(claimElsewhere(subnet)).toBe('false\n')
  expect(claimElsewhere(`${subnet}-other`)).toBe('true\n')
})
