import type { UsageHistoryReply } from '../../src/api/usage.ts'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { hangShim } from '../support/hang-shim.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const port = await freePort()
const promtool = fetchPromtool()

const ask = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text()

/** promtool of Debian, or why this machine has none. */
function fetchPromtool(): string | { readonly skipped: string } {
  const directory = join(process.env['PODD_TEST_CACHE'] ?? '/var/cache/podd-test', 'promtool')
  const script = new URL('../lib/debian-packages.sh', import.meta.url).pathname
  const { status, stderr } = spawnSync(script, ['trixie', directory, 'promtool'], { encoding: 'utf8' })
  return status === 0 ? join(directory, 'usr/bin/promtool') : { skipped: `no promtool: ${stderr.trim()}` }
}

/** What it says; rejects with that where it fails. What it only finds ugly in names is no failure. */
async function runPromtool(args: readonly string[], input = ''): Promise<string> {
  const child = spawn(typeof promtool === 'string' ? promtool : '', args)
  child.stdin.end(input)
  const [said, complaints, [code]] = await Promise.all([
    textOf(child.stdout),
    textOf(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ])
  const looksOnly = args[0] === 'check' && code === 3
  if (code !== 0 && !looksOnly) throw new Error(`${said}${complaints}`)
  return said
}

function readLabels(line: string): Readonly<Record<string, string>> {
  const pairs = [...line.matchAll(/(?<name>\w+)="(?<value>(?:[^"\\]|\\.)*)"/gu)]
  return Object.fromEntries(pairs.map(({ groups }) => [groups?.['name'] ?? '', groups?.['value'] ?? '']))
}

/** A test for promtool: these metrics for two hours, scraped as the rules have it, and what the alerts are after that. */
function ruleTest(metrics: string, expected: Readonly<Record<string, readonly object[]>>): object {
  const lines = metrics.split('\n').filter((line) => /^(?:kube|kubelet)_/u.test(line))
  return {
    rule_files: [new URL('../fixtures/alerts/kube-prometheus.yaml', import.meta.url).pathname],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: lines.map((line) => {
          const value = line.slice(line.lastIndexOf(' ') + 1)
          const series = line.slice(0, line.lastIndexOf(' '))
          const job = `job="${series.startsWith('kube_') ? 'kube-state-metrics' : 'kubelet'}"`
          const labelled = series.endsWith('}') ? `${series.slice(0, -1)},${job}}` : `${series}{${job}}`
          return { series: labelled, values: `${value}x120` }
        }),
        alert_rule_test: Object.entries(expected).map(([alertname, alerts]) => ({
          eval_time: '90m',
          alertname,
          exp_alerts: alerts.map((labels) => ({ exp_labels: labels })),
        })),
      },
    ],
  }
}

describePodd(
  'the kubelet’s read-only port',
  { config: { readOnlyPort: port, api: { page: true } } },
  (rig) => {
    it('tells what a pod uses, as the runtime measures it', async () => {
      const podd = rig()
      podd.drop('busy', shellPod('busy', podd.shared, 'while :; do :; done', {}))
      const { metadata } = await podd.untilReady('busy')
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

    it.skipIf(typeof promtool !== 'string')(
      'tells the rules of kube-prometheus which pods crash, wait or are not ready, and no other' +
        (typeof promtool === 'string' ? '' : ` (skipped: ${promtool.skipped})`),
      async () => {
        const podd = rig()
        podd.drop('crash', shellPod('crash', podd.shared, 'exit 3'))
        const absent = { name: 'main', image: 'localhost/podd-test/none:1', imagePullPolicy: 'Never' }
        podd.drop('absent', shellPod('absent', podd.shared, '', { spec: { containers: [absent] } }))
        const uids = await podd.until('their reasons', async () => {
          const found = new Map<string, string>()
          for (const line of (await ask('/metrics')).split('\n'))
            if (line.startsWith('kube_pod_container_status_waiting_reason{')) {
              const { pod = '', reason = '', uid = '' } = readLabels(line)
              if (['CrashLoopBackOff', 'ErrImageNeverPull'].includes(reason)) found.set(pod, uid)
            }
          return found.size === 2 ? found : undefined
        })
        const text = await ask('/metrics')
        expect(text).toMatch(/^kube_pod_container_status_restarts_total\{.*pod="crash",.*\} [1-9]/mu)
        expect(text).toMatch(
          /^kube_pod_container_status_last_terminated_reason\{.*pod="crash",.*reason="Error"\} 1$/mu,
        )
        expect(text).toMatch(
          /^kubelet_started_containers_errors_total\{container_type="container",code="ErrImageNeverPull"\} [1-9]/mu,
        )
        expect(text).toMatch(/^kubelet_pod_start_duration_seconds_count [1-9]/mu)
        const job = 'kube-state-metrics'
        const container = (pod: string, reason: string) => {
          const uid = uids.get(pod)
          return { namespace: 'default', pod, uid, container: 'main', reason, job, severity: 'warning' }
        }
        const ofPod = (pod: string) => ({ namespace: 'default', pod, job, severity: 'warning' })
        const directory = await mkdtemp(join(tmpdir(), 'podd-rules-'))
        try {
          const file = join(directory, 'test.json')
          const expected: Record<string, readonly object[]> = {
            KubePodCrashLooping: [container('crash', 'CrashLoopBackOff')],
            KubeContainerWaiting: [container('absent', 'ErrImageNeverPull')],
            KubePodNotReady: [ofPod('absent'), ofPod('crash')],
            KubeletPodStartUpLatencyHigh: [],
          }
          await writeFile(file, JSON.stringify(ruleTest(text, expected)))
          await expect(runPromtool(['check', 'metrics'], text)).resolves.not.toContain('error')
          expect(await runPromtool(['test', 'rules', file])).toContain('SUCCESS')
        } finally {
          await rm(directory, { recursive: true, force: true })
        }
        podd.removeManifest('crash')
        podd.removeManifest('absent')
        await podd.untilGone('crash')
      },
    )

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
