import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import { formatConformance } from './conformance-doc.ts'
import type { SpecResult } from './ginkgo-report.ts'
import { findPrograms, NodeSuite } from './node-suite.ts'
import type { Batch } from './node-suite.ts'
import { planBatches } from './plan-batches.ts'
import { reasonFor, reasons } from './reasons.ts'
import { isOfNode, writeRunFacts } from './run-reports.ts'
import { suiteArchives } from './suite-images.ts'

const programs = findPrograms(process.env['PODD_CONFORMANCE_PROGRAMS'])
const chosen = (process.env['PODD_CONFORMANCE_FILES'] ?? '').split(',').filter((file) => file !== '')
const focus = process.env['PODD_CONFORMANCE_FOCUS'] ?? ''
const skip = process.env['PODD_CONFORMANCE_SKIP'] ?? ''
/** Where the suite's logs and reports stay. */
const reportsDir = process.env['PODD_CONFORMANCE_REPORTS']
const isWhole = chosen.length === 0 && focus === ''

/** So many specs at once: most of their time they wait. */
const parallel = Number(process.env['PODD_CONFORMANCE_PARALLEL'] || 8)

const token = randomBytes(16).toString('hex')

/**
 * Of a client with a token, over TLS: some specs open WebSockets with an origin that podd takes for another site's page, unless
 * the client has one.
 */
function formatKubeconfig(authority: string): string {
  const server = `https://127.0.0.1:${port}`
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'podd', cluster: { server, 'certificate-authority-data': authority } }],
    users: [{ name: 'suite', user: { token } }],
    contexts: [{ name: 'podd', context: { cluster: 'podd', user: 'suite' } }],
    'current-context': 'podd',
  })
}

// Some specs ask for the kubelet's port of the node.
const port = await freePort()
const tokenDirectory = mkdtempSync(join(tmpdir(), 'podd-conformance-'))
afterAll(() => rmSync(tokenDirectory, { recursive: true }))
const tokenFile = join(tokenDirectory, 'tokens')
writeFileSync(tokenFile, `${token},suite,suite,"system:masters"\n`, { mode: 0o600 })

const config = {
  api: { listen: `127.0.0.1:${port}`, tokenFile },
  // As long as a kubelet's, which specs expect; other tests have shorter ones.
  crashLoopBackOff: { maxContainerRestartPeriod: '5m' },
}

describePodd('Kubernetes’ specs of a node', { config }, (rig) => {
  it('pass, but for those that have a reason', async () => {
    const podd = rig()
    const kubeconfig = join(podd.directory, 'kubeconfig')
    const [, authority = ''] = /certificate-authority-data: (\S+)/u.exec(await podd.cliOk('kubeconfig')) ?? []
    writeFileSync(kubeconfig, formatKubeconfig(authority))
    const directory = reportsDir ?? podd.directory
    mkdirSync(directory, { recursive: true })
    const facts = { release: podd.install.version, skip }
    writeRunFacts(directory, facts)
    const suite = new NodeSuite(programs.suite, directory, kubeconfig)
    for (const archive of suiteArchives(suite.images(), programs.agnhost)) {
      const path = join(podd.directory, 'image.tar')
      writeFileSync(path, archive)
      await podd.cliOk('images', 'import', path)
    }
    const flags = [
      ...(focus === '' ? [] : [`--ginkgo.focus=${focus}`]),
      ...(skip === '' ? [] : [`--ginkgo.skip=${skip}`]),
    ]
    const listed = suite.list(flags).filter((spec) => isOfNode(spec) && spec.state !== 'skipped')
    const wanted = listed.filter(({ file }) => chosen.length === 0 || chosen.includes(file))
    const results: SpecResult[] = []
    const takeTurns = async (batches: Batch[]): Promise<void> => {
      for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
        const came = await suite.run(batch)
        results.push(...came)
        const passed = came.filter(({ state }) => state === 'passed').length
        console.log(`${came[0]?.file}: ${passed} of ${came.length} passed`)
        for (const { name, state, message } of came)
          if (state !== 'passed') console.log(`  ${state}: ${name}: ${message}`)
      }
    }
    const together = planBatches(
      'parallel',
      wanted.filter(({ isSerial }) => !isSerial),
    )
    await Promise.all(Array.from({ length: parallel }, () => takeTurns(together)))
    await takeTurns(
      planBatches(
        'serial',
        wanted.filter(({ isSerial }) => isSerial),
      ),
    )
    if (isWhole) {
      const path = resolve(import.meta.dirname, '../../docs/CONFORMANCE.md')
      writeFileSync(path, formatConformance({ runs: [facts], results }))
    }
    const unused = reasons.filter(({ spec }) => !results.some(({ name }) => spec.test(name)))
    expect(isWhole && skip === '' ? unused : []).toEqual([])
    const unexplained = results.filter((spec) => spec.state === 'failed' && reasonFor(spec) === undefined)
    expect(unexplained.map(({ name, message }) => `${name}: ${message}`)).toEqual([])
    expect(results.length).toBeGreaterThan(0)
  })
})
