import type { UsageHistoryReply } from '../../src/api/usage-history.ts'
import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

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
