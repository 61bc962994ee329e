import type { UsageHistoryReply } from '../../src/api/usage.ts'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { hangShim } from '../support/hang-shim.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const port = await freePort()

describePodd(
  'the kubelet’s read-only port',
  { config: { readOnlyPort: port, api: { page: true } } },
  (rig) => {
    it('tells what a pod uses, as the runtime measures it', async () => {
      const podd = rig()
      podd.drop('busy', shellPod('busy', podd.shared, 'while :; do :; done', {}))
      const { metadata } = await podd.untilReady('busy')
      const ask = async (path: string): Promise<string> =>
        (await fetch(`http://127.0.0.1:${port}${path}`)).text()
      const seconds = await podd.until('CPU time', async () => {
        const text = await ask('/metrics/resource')
        const found = /^container_cpu_usage_seconds_total\{.*pod="busy"\} (?<value>[\d.]+)$/mu.exec(text)
        return Number(found?.groups?.['value'] ?? 0) > 0.2 ? text : undefined
      })
      expect(seconds).toMatch(/^node_memory_working_set_bytes [1-9]\d+$/mu)
      expect(seconds).toMatch(/^container_memory_working_set_bytes\{.*pod="busy"\} [1-9]\d+$/mu)
      expect(await ask('/metrics/cadvisor')).toMatch(
        /^container_cpu_usage_seconds_total\{container="main",.*image="localhost\/podd-test\/shell:1",.*pod="busy",cpu="total"\} /mu,
      )
      const metrics = await ask('/metrics')
      expect(metrics).toContain('\nkubelet_running_pods 1\n')
      expect(metrics).toMatch(/^kubelet_runtime_operations_total\{operation_type="run_podsandbox"\} 1$/mu)
      const summary: {
        node: { fs: { capacityBytes: number }; startTime: string }
        pods: { podRef: unknown; containers: { cpu: { usageNanoCores: number } }[] }[]
      } = JSON.parse(await ask('/stats/summary'))
      expect(summary.node.fs.capacityBytes).toBeGreaterThan(0)
      expect(Date.parse(summary.node.startTime)).toBeLessThan(Date.now())
      const [pod] = summary.pods
      expect(pod?.podRef).toEqual({ name: 'busy', namespace: 'default', uid: metadata.uid })
      expect(pod?.containers[0]?.cpu.usageNanoCores).toBeGreaterThan(0)
    })

    it('tells it beside a pod that has completed', async () => {
      const podd = rig()
      podd.drop('done', shellPod('done', podd.shared, 'say done', { spec: { restartPolicy: 'Never' } }))
      await podd.untilPhase('done', 'Succeeded')
      for (const path of ['/metrics/resource', '/metrics/cadvisor', '/stats/summary']) {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`)
        expect([path, answer.status]).toEqual([path, 200])
        expect(await answer.text()).toContain('busy')
      }
    })

    it('waits for its port where another process has it, says so, and opens it then', async () => {
      const podd = rig()
      await podd.stopDaemon()
      const other = createServer().listen(port, '127.0.0.1')
      await once(other, 'listening')
      const address = `127.0.0.1:${port}`
      const failure = `cannot listen at ${address}: listen EADDRINUSE: address already in use ${address}`
      try {
        await podd.startDaemon()
        expect(await podd.cliOk('status')).toMatch(
          new RegExp(`listen-read-only failed .* ago: ${failure}`, 'u'),
        )
        expect((await podd.cli('doctor', ...podd.flags())).stdout).toContain(`readOnlyPort: ${failure}`)
        expect((await podd.cli('doctor')).stdout).toContain(`readOnlyPort: ${failure}`)
        expect(await podd.cliOk('events')).toContain(`readOnlyPort: ${failure}; podd keeps trying`)
      } finally {
        other.close()
      }
      const answer = () => fetch(`http://${address}/healthz`).catch(() => undefined)
      await podd.until('an answer', async () => (await answer())?.status === 200)
      expect(await podd.cliOk('status')).not.toContain('listen-read-only')
      expect((await podd.cli('doctor', ...podd.flags())).stdout).toContain(`podd listens at ${address}`)
    })

    it('tells it beside a pod whose shim hangs, and waits for that once', async () => {
      const podd = rig()
      podd.drop('hung', shellPod('hung', podd.shared, 'say start; stay'))
      const hung = await podd.untilReady('hung')
      const paths = ['/metrics/resource', '/stats/summary', '/metrics/cadvisor', '/metrics/resource']
      {
        using _ = hangShim(podd, hung)
        for (const path of paths) {
          const askedMs = performance.now()
          const signal = AbortSignal.timeout(20_000 * slowness)
          const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal })
          expect([path, answer.status]).toEqual([path, 200])
          expect(usedMemory(await answer.text(), path)).toContain('busy')
          expect(performance.now() - askedMs).toBeLessThan((path === paths[0] ? 9000 : 2000) * slowness)
        }
        const askedMs = performance.now()
        expect(await podd.cliOk('top', 'pods')).toMatch(/^busy +\d/mu)
        expect(performance.now() - askedMs).toBeLessThan(4000 * slowness)
      }
      await podd.until('its usage', async () => /^hung +\d/mu.test(await podd.cliOk('top', 'pods')))
      podd.removeManifest('hung')
      await podd.untilGone('hung')
    })

    it('serves the status page, and what was used, over the socket alone', async () => {
      const podd = rig()
      const page = await podd.getText('/ui')
      expect(page).toContain('<meta name="podd-user" content="root" />')
      expect(await podd.getText('/ui/page.js')).toContain('sessionStorage')
      const usage = await podd.get<UsageHistoryReply>('/podd/v1/usage')
      expect(usage.node.memoryBytes[0]).toBeGreaterThan(0)
      expect(usage.times).toHaveLength(usage.node.cpuMillis.length)
      expect((await fetch(`http://127.0.0.1:${port}/ui`)).status).toBe(404)
    })
  },
)

/** The names of the pods whose memory an answer tells. */
function usedMemory(text: string, path: string): readonly string[] {
  if (path !== '/stats/summary')
    return [...text.matchAll(/^container_memory_working_set_bytes\{.*pod="(?<pod>[^"]+)"\} [1-9]/gmu)].map(
      ({ groups }) => groups?.['pod'] ?? '',
    )
  const { pods }: { pods: { podRef: { name: string }; memory?: { workingSetBytes?: number } }[] } =
    JSON.parse(text)
  return pods.flatMap(({ podRef, memory }) => ((memory?.workingSetBytes ?? 0) > 0 ? [podRef.name] : []))
}
