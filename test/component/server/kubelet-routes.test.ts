import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SourceObject } from '../../../src/api/sources.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { readOnlyPort } from '../../../src/server/read-only-port.ts'
import type { UnitObject } from '../../../src/api/sources.ts'
import { ApiRig, plainStats } from '../../support/api-rig.ts'
import { freePort } from '../../support/free-port.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'

const containerId = 'c0ffee'

let rig: ApiRig

beforeEach(async () => {
  rig = await ApiRig.start()
  const running = { running: { startedAt: '2026-01-01T00:00:30Z' } }
  const main = containerStatus('main', { containerID: `containerd://${containerId}`, state: running })
  rig.pods.put(podObject({ name: 'web', status: { containerStatuses: [main] } }))
  rig.pods.put(podObject({ name: 'done', status: { phase: 'Succeeded' } }))
  rig.stats = {
    ...plainStats,
    pods: [
      {
        uid: 'uid-web',
        cpuNanoSeconds: 3.5e9,
        memory: { workingSet: 70, usage: 90, rss: 60, pageFaults: 5, majorPageFaults: 1 },
        swapBytes: undefined,
        processes: 4,
        interfaces: [{ name: 'eth0', receivedBytes: 1000, receiveErrors: 0, sentBytes: 2000, sendErrors: 1 }],
        containers: [
          {
            name: 'main',
            id: containerId,
            cpuNanoSeconds: 3e9,
            memory: { workingSet: 50, usage: 80, rss: 40, pageFaults: 5, majorPageFaults: 1 },
            swapBytes: undefined,
            layer: { usedBytes: 4096, inodesUsed: 7 },
          },
        ],
      },
    ],
  }
})

afterEach(() => rig[Symbol.asyncDispose]())

describe('what a kubelet serves', () => {
  it('is the metrics of resources, each once for what runs', async () => {
    const { text, contentType } = await rig.call('/metrics/resource')
    expect(contentType).toContain('text/plain; version=0.0.4')
    expect(text).toContain('\nnode_cpu_usage_seconds_total 12.5\n')
    expect(text).toContain('\nnode_memory_working_set_bytes 400\n')
    expect(text).toContain(
      '\ncontainer_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 3\n',
    )
    expect(text).toContain(
      '\ncontainer_start_time_seconds{container="main",namespace="default",pod="web"} 1767225630\n',
    )
    expect(text).toContain('\npod_cpu_usage_seconds_total{namespace="default",pod="web"} 3.5\n')
    expect(text).toContain('\npod_memory_working_set_bytes{namespace="default",pod="web"} 70\n')
    expect(text).not.toContain('pod="done"')
    rig.counts = {
      ...rig.counts,
      terminations: [{ type: 'container', exitCode: 139, reason: 'Error', count: 2 }],
    }
    expect((await rig.call('/api/v1/nodes/box:10250/proxy/metrics')).text).toContain(
      '\nkubelet_terminated_containers_total{container_type="container",exit_code="139",reason="Error"} 2\n',
    )
    // The runtime says nothing of swap.
    expect(text).not.toContain('container_swap_usage_bytes')
  })

  it.each([
    ['box', 200],
    ['https:box:10250', 200],
    ['other', 404],
    ['other:10250', 404],
  ])('is served below the node of its name alone: %s', async (name, status) => {
    expect(await rig.call(`/api/v1/nodes/${name}/proxy/pods`)).toMatchObject({ code: status })
  })

  it('is cAdvisor’s metrics under its labels', async () => {
    const { text } = await rig.call('/metrics/cadvisor')
    const labels = `container="main",id="/${containerId}",image="busybox:1",name="${containerId}",namespace="default",pod="web"`
    expect(text).toContain(`\ncontainer_cpu_usage_seconds_total{${labels},cpu="total"} 3\n`)
    expect(text).toContain(`\ncontainer_memory_working_set_bytes{${labels}} 50\n`)
    expect(text).toContain(`\ncontainer_fs_usage_bytes{${labels},device=""} 4096\n`)
    expect(text).toMatch(
      /^container_network_transmit_bytes_total\{.*namespace="default",pod="web",interface="eth0"\} 2000$/mu,
    )
    expect(text).toContain('\nmachine_cpu_cores 2\n')
  })

  it('is the runtime’s own metrics beside those that podd computes, each once', async () => {
    const labels = { container: 'main', pod: 'web', namespace: 'default' }
    const family = (name: string, value: number) => ({
      name,
      help: 'by the runtime',
      type: 'counter' as const,
      series: [{ labels, value }],
    })
    rig.runtimeMetrics = {
      families: [
        family('container_cpu_usage_seconds_total', 2),
        family('container_processes', 9),
        family('container_memory_swap', 8),
      ],
      failed: false,
    }
    const { text } = await rig.call('/metrics/cadvisor')
    expect(text).toContain('\ncontainer_processes{container="main",pod="web",namespace="default"} 9\n')
    // podd has none of it.
    expect(text).toContain('\ncontainer_memory_swap{container="main",pod="web",namespace="default"} 8\n')
    expect(text.match(/^# TYPE container_cpu_usage_seconds_total/gmu)).toHaveLength(1)
    expect(text).toMatch(/^container_cpu_usage_seconds_total\{.*cpu="total"\} 3$/mu)
    expect(text).toContain('\ncontainer_scrape_error 0\n')
    rig.runtimeMetrics = { families: [], failed: true }
    expect((await rig.call('/metrics/cadvisor')).text).toContain('\ncontainer_scrape_error 1\n')
  })

  it('is a checkpoint of a running container, in the kubelet’s words', async () => {
    const asked: unknown[] = []
    rig.reach = {
      ...rig.reach,
      checkpoint: async (request) => {
        asked.push(request)
        if (request.timeoutSeconds === 1) throw new Error('CRIU binary not found or too old')
        return '/var/lib/podd/checkpoints/one.tar'
      },
    }
    const post = async (path: string) => {
      const { code, text } = await rig.call(path, 'POST')
      const body: { message?: string } = JSON.parse(text)
      return [code, body.message ?? body]
    }
    const made = [200, { items: ['/var/lib/podd/checkpoints/one.tar'] }]
    expect(await post('/checkpoint/default/web/main')).toEqual(made)
    expect(await post('/api/v1/nodes/box/proxy/checkpoint/default/web/main?timeout=5&timeout=7')).toEqual(
      made,
    )
    const target = { pod: { namespace: 'default', name: 'web' }, container: 'main', containerId }
    expect(asked).toEqual([
      { ...target, timeoutSeconds: 0 },
      { ...target, timeoutSeconds: 7 },
    ])
    expect(await post('/checkpoint/default/absent/main')).toEqual([404, 'pod does not exist'])
    expect(await post('/checkpoint/other/web/main')).toEqual([404, 'pod does not exist'])
    expect(await post('/checkpoint/default/web/absent')).toEqual([404, 'container absent does not exist'])
    expect(await post('/checkpoint/default/web/main?timeout=soon')).toEqual([
      404,
      'cannot parse value of timeout parameter',
    ])
    expect(await post('/checkpoint/default/web/main?timeout=1')).toEqual([
      500,
      'checkpointing of default/web/main failed (CRIU binary not found or too old)',
    ])
    expect(await post('/checkpoint/default/done/main')).toEqual([
      500,
      expect.stringMatching(/^checkpointing of default\/done\/main failed \(/u),
    ])
    expect(asked).toHaveLength(3)
    expect((await rig.call('/checkpoint/default/web/main')).code).toBe(405)
  })

  it('is what images use of their file system, where the runtime tells it', async () => {
    const imageFs = { path: '/images', capacityBytes: 1000, availableBytes: 300, inodes: 50, inodesFree: 20 }
    const host = { ...plainStats.host, imageFs }
    rig.stats = { ...rig.stats, host }
    const runtime = async (): Promise<unknown> => {
      const summary: { node: { runtime: unknown } } = JSON.parse((await rig.call('/stats/summary')).text)
      return summary.node.runtime
    }
    const whole = { capacityBytes: 1000, availableBytes: 300, usedBytes: 700, inodesUsed: 30 }
    expect(await runtime()).toMatchObject({ imageFs: whole, containerFs: whole })
    const used = { usedBytes: 77, inodesUsed: 5 }
    rig.stats = { ...rig.stats, host: { ...host, imageFs: { ...imageFs, ...used } } }
    expect(await runtime()).toMatchObject({
      imageFs: { ...whole, ...used },
      containerFs: { ...whole, ...used },
    })
  })

  it('is its own metrics, and podd’s', async () => {
    const durations = (count: number) => ({ buckets: [{ bound: 0.005, count: count - 1 }], count, sum: 4.5 })
    rig.operations = [
      { rpc: 'RunPodSandbox', errors: 1, durations: durations(2) },
      { rpc: 'CreateContainer', errors: 0, durations: durations(3) },
      { rpc: 'ListPodSandbox', errors: 0, durations: durations(5) },
    ]
    rig.counts = {
      terminations: [],
      starts: [{ type: 'init_container', count: 4 }],
      failedStarts: [{ type: 'container', code: 'ErrImagePull', count: 2 }],
      podStarts: durations(1),
      passes: [{ kind: 'sync', durations: durations(9) }],
    }
    rig.status = {
      ...rig.status,
      problems: [{ severity: 'error', place: { path: '/etc/pods/a.yaml' }, message: 'bad' }],
    }
    const { text } = await rig.call('/metrics')
    expect(text).toContain('\nkubelet_node_name{node="box"} 1\n')
    expect(text).toContain('\nkubelet_running_pods 1\n')
    expect(text).toContain('\nkubelet_active_pods{static="true"} 1\n')
    expect(text).toContain('\nkubelet_runtime_operations_total{operation_type="run_podsandbox"} 2\n')
    expect(text).toContain('\nkubelet_runtime_operations_total{operation_type="create_container"} 3\n')
    expect(text).toContain('\nkubelet_runtime_operations_total{operation_type="list_podsandbox"} 5\n')
    expect(text).toContain('\nkubelet_runtime_operations_errors_total{operation_type="run_podsandbox"} 1\n')
    expect(text).not.toContain('errors_total{operation_type="create_container"}')
    const ofSandboxes = 'kubelet_runtime_operations_duration_seconds'
    expect(text).toContain(`\n# TYPE ${ofSandboxes} histogram\n`)
    expect(text).toContain(
      [
        `\n${ofSandboxes}_bucket{operation_type="run_podsandbox",le="0.005"} 1`,
        `${ofSandboxes}_bucket{operation_type="run_podsandbox",le="+Inf"} 2`,
        `${ofSandboxes}_sum{operation_type="run_podsandbox"} 4.5`,
        `${ofSandboxes}_count{operation_type="run_podsandbox"} 2\n`,
      ].join('\n'),
    )
    expect(text).toContain('\nkubelet_started_pods_total 2\n')
    expect(text).toContain('\nkubelet_started_pods_errors_total 1\n')
    expect(text).toContain('\nkubelet_started_containers_total{container_type="init_container"} 4\n')
    expect(text).toContain(
      '\nkubelet_started_containers_errors_total{container_type="container",code="ErrImagePull"} 2\n',
    )
    expect(text).toContain('\nkubelet_pod_start_duration_seconds_count 1\n')
    expect(text).toContain('\nkubelet_pod_worker_duration_seconds_count{operation_type="sync"} 9\n')
    expect(text).toContain('\npodd_problems{severity="error"} 1\n')
    expect(text).toContain('\npodd_source_ready{source="file"} 1\n')
    expect(text).toContain('\nprocess_cpu_seconds_total 1.5\n')
  })

  it('says of each source whether it can be read, since when, and what it gives', async () => {
    const source = (name: string, status: Partial<SourceObject['status']>): SourceObject => ({
      apiVersion: 'podd.dev/v1',
      kind: 'Source',
      metadata: { name },
      spec: { type: 'URL', place: 'https://host/pods' },
      status: {
        state: 'Following',
        mode: 'poll',
        ready: true,
        pods: 1,
        objects: 0,
        errors: 0,
        warnings: 0,
        lastGood: false,
        ...status,
      },
    })
    rig.sources = [
      source('http:good', { hash: 'abc', etag: '"1"', lastAnswerTime: '2026-01-01T00:00:30Z' }),
      source('http:bad', { state: 'Failing', lastGood: true, failingSince: '2026-01-01T00:00:30Z' }),
      source('http:held', { state: 'Held', heldSince: '2026-01-01T00:00:30Z' }),
      source('http:held-bad', { state: 'Held', failingSince: '2026-01-01T00:00:30Z' }),
      source('http:new', { state: 'Unread', ready: false }),
    ]
    const { text } = await rig.call('/metrics')
    const up = [...text.matchAll(/^podd_source_up\{source="(?<name>[^"]+)"\} (?<up>\d)$/gmu)]
    expect(up.map(({ groups }) => [groups?.['name'], groups?.['up']])).toEqual([
      ['http:good', '1'],
      ['http:bad', '0'],
      ['http:held', '1'],
      ['http:held-bad', '0'],
      ['http:new', '0'],
    ])
    expect(text).toContain('\npodd_source_last_success_timestamp_seconds{source="http:good"} 1767225630\n')
    expect(text).not.toContain('podd_source_last_success_timestamp_seconds{source="http:bad"}')
    expect(text).toContain('\npodd_source_revision_info{source="http:good",revision="abc"} 1\n')
    expect(text).toContain('\npodd_source_state{source="http:bad",state="Failing"} 1\n')
    expect(text).toContain('\npodd_source_state{source="http:bad",state="Following"} 0\n')
  })

  it('says of each unit which revision counts, which is offered, and how it is', async () => {
    rig.units = [
      {
        apiVersion: 'podd.dev/v1',
        kind: 'Unit',
        metadata: { name: '/etc/pods/web.yaml' },
        spec: { source: 'file' },
        status: { state: 'RolledBack', active: 2, offered: 3, progressing: [], revisions: [] },
      },
    ]
    const { text } = await rig.call('/metrics')
    const labels = 'source="file",unit="/etc/pods/web.yaml"'
    expect(text).toContain(`\npodd_unit_state{${labels},state="RolledBack"} 1\n`)
    expect(text).toContain(`\npodd_unit_state{${labels},state="Healthy"} 0\n`)
    expect(text).toContain(`\npodd_unit_active_revision{${labels}} 2\n`)
    expect(text).toContain(`\npodd_unit_offered_revision{${labels}} 3\n`)
  })

  it('says so of a pod that was written over the API only where another version counts', async () => {
    const unit = (name: string, active: number): UnitObject => ({
      apiVersion: 'podd.dev/v1',
      kind: 'Unit',
      metadata: { name: `api:default/${name}` },
      spec: { source: 'api' },
      status: { state: 'Failed', active, offered: 2, progressing: [], revisions: [] },
    })
    rig.units = [unit('as-written', 2), unit('back', 1)]
    const { text } = await rig.call('/metrics')
    expect(text).toContain('\npodd_unit_active_revision{source="api",unit="api:default/back"} 1\n')
    expect(text).not.toContain('as-written')
  })

  it('is its pods under the names and labels of kube-state-metrics', async () => {
    const labels = 'namespace="default",pod="web",uid="uid-web"'
    rig.pods.put(
      podObject({
        name: 'web',
        spec: {
          priorityClassName: 'high',
          hostNetwork: true,
          initContainers: [{ name: 'side', image: 'side:1', resources: { limits: { memory: '1Ki' } } }],
          containers: [
            {
              name: 'main',
              image: 'busybox:1',
              resources: {
                requests: { cpu: '250m', 'ephemeral-storage': '1M' },
                limits: { cpu: 1, 'hugepages-2Mi': '4Mi', 'example.com/dongle': '2' },
              },
            },
          ],
        },
        status: {
          phase: 'Pending',
          hostIP: '192.0.2.1',
          podIP: '10.0.0.2',
          conditions: [{ type: 'Ready', status: 'False' }],
          initContainerStatuses: [containerStatus('side', { restartCount: 1 })],
          containerStatuses: [
            containerStatus('main', {
              containerID: `containerd://${containerId}`,
              state: { waiting: { reason: 'CrashLoopBackOff' } },
              lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } },
              ready: false,
              restartCount: 7,
            }),
          ],
        },
      }),
    )
    const { text } = await rig.call('/metrics')
    const ofWeb = text
      .split('\n')
      .filter((line) => line.startsWith('kube_') && line.includes('pod="web"'))
      .map((line) => line.replace(labels, '…'))
    const resource = (name: string, of: string, unit: string) =>
      `{…,container="${name}",node="box",resource="${of}",unit="${unit}"}`
    expect(ofWeb).toEqual([
      'kube_pod_info{…,host_ip="192.0.2.1",pod_ip="10.0.0.2",node="box",created_by_kind="",created_by_name="",priority_class="high",host_network="true"} 1',
      'kube_pod_owner{…,owner_kind="",owner_name="",owner_is_controller=""} 1',
      'kube_pod_status_phase{…,phase="Pending"} 1',
      'kube_pod_status_phase{…,phase="Succeeded"} 0',
      'kube_pod_status_phase{…,phase="Failed"} 0',
      'kube_pod_status_phase{…,phase="Unknown"} 0',
      'kube_pod_status_phase{…,phase="Running"} 0',
      'kube_pod_status_ready{…,condition="true"} 0',
      'kube_pod_status_ready{…,condition="false"} 1',
      'kube_pod_status_ready{…,condition="unknown"} 0',
      'kube_pod_status_reason{…,reason="Evicted"} 0',
      'kube_pod_status_reason{…,reason="NodeAffinity"} 0',
      'kube_pod_status_reason{…,reason="NodeLost"} 0',
      'kube_pod_status_reason{…,reason="Shutdown"} 0',
      'kube_pod_status_reason{…,reason="UnexpectedAdmissionError"} 0',
      `kube_pod_container_info{…,container="main",image_spec="busybox:1",image="busybox:1",image_id="sha256:0123",container_id="containerd://${containerId}"} 1`,
      'kube_pod_container_status_restarts_total{…,container="main"} 7',
      'kube_pod_container_status_waiting_reason{…,container="main",reason="CrashLoopBackOff"} 1',
      'kube_pod_container_status_last_terminated_reason{…,container="main",reason="OOMKilled"} 1',
      'kube_pod_container_status_ready{…,container="main"} 0',
      'kube_pod_init_container_info{…,container="side",image_spec="side:1",image="busybox:1",image_id="sha256:0123",container_id=""} 1',
      'kube_pod_init_container_status_restarts_total{…,container="side"} 1',
      'kube_pod_init_container_status_ready{…,container="side"} 1',
      `kube_pod_container_resource_requests${resource('main', 'cpu', 'core')} 0.25`,
      `kube_pod_container_resource_requests${resource('main', 'hugepages_2Mi', 'byte')} 4194304`,
      `kube_pod_container_resource_requests${resource('main', 'example_com_dongle', 'integer')} 2`,
      `kube_pod_container_resource_requests${resource('main', 'ephemeral_storage', 'byte')} 1000000`,
      `kube_pod_container_resource_limits${resource('main', 'cpu', 'core')} 1`,
      `kube_pod_container_resource_limits${resource('main', 'hugepages_2Mi', 'byte')} 4194304`,
      `kube_pod_container_resource_limits${resource('main', 'example_com_dongle', 'integer')} 2`,
      `kube_pod_init_container_resource_requests${resource('side', 'memory', 'byte')} 1024`,
      `kube_pod_init_container_resource_limits${resource('side', 'memory', 'byte')} 1024`,
    ])
  })

  it('is how often each probe came to what', async () => {
    const counts = { success: 4, failure: 0, unknown: 1, repeated: 0 }
    rig.probes = [{ container: 'main', probe: 'readiness', result: 'success', counts }]
    const { text } = await rig.call('/metrics/probes')
    const labels = 'container="main",pod="web",namespace="default",pod_uid="uid-web"'
    expect(text).toContain(`\nprober_probe_total{probe_type="Readiness",result="successful",${labels}} 4\n`)
    expect(text).toContain(`\nprober_probe_total{probe_type="Readiness",result="unknown",${labels}} 1\n`)
    expect(text).not.toContain('result="failed"')
  })

  it('is a summary of what the node and its pods use, below the node’s proxy too', async () => {
    rig.reach = {
      ...rig.reach,
      usage: async () => [
        { uid: 'uid-web', container: 'main', atMs: 0, windowMs: 1000, cpuNanoCores: 250, memoryBytes: 50 },
      ],
    }
    const { text } = await rig.call('/stats/summary')
    const summary: unknown = JSON.parse(text)
    expect(summary).toMatchObject({
      node: {
        nodeName: 'box',
        memory: { workingSetBytes: 400, availableBytes: 600 },
        fs: { capacityBytes: 10_000, usedBytes: 6000, inodesUsed: 10 },
        rlimit: { maxpid: 32_768, curproc: 100 },
      },
      pods: [
        {
          podRef: { name: 'web', namespace: 'default', uid: 'uid-web' },
          cpu: { usageNanoCores: 250, usageCoreNanoSeconds: 3.5e9 },
          network: { name: 'eth0', rxBytes: 1000, txErrors: 1 },
          process_stats: { process_count: 4 },
          containers: [
            {
              name: 'main',
              startTime: '2026-01-01T00:00:30Z',
              cpu: { usageNanoCores: 250, usageCoreNanoSeconds: 3e9 },
              rootfs: { usedBytes: 4096, inodesUsed: 7 },
            },
          ],
        },
      ],
    })
    const proxied = await rig.call('/api/v1/nodes/box/proxy/stats/summary')
    expect(proxied.text).toBe(text)
  })

  it('is its pods, and its settings', async () => {
    const names = async (path: string): Promise<readonly string[]> => {
      const list: { items: { metadata: { name: string } }[] } = JSON.parse((await rig.call(path)).text)
      return list.items.map(({ metadata }) => metadata.name)
    }
    expect(await names('/pods')).toEqual(['done', 'web'])
    expect(await names('/runningpods')).toEqual(['web'])
    expect(JSON.parse((await rig.call('/configz')).text)).toEqual({ kubeletconfig: { maxPods: 110 } })
  })
})

describe('the read-only port', () => {
  it('serves metrics and pods, and nothing that changes or shows more', async () => {
    const address = { host: '127.0.0.1', port: await freePort() }
    const readers = rig.readers()
    const port = readOnlyPort(address, readers, systemClock, silentLogger)
    await port.open()
    try {
      const ask = async (path: string, method = 'GET'): Promise<number> =>
        (await fetch(`http://127.0.0.1:${address.port}${path}`, { method })).status
      expect(await ask('/metrics')).toBe(200)
      expect(await ask('/pods')).toBe(200)
      expect(await ask('/healthz')).toBe(200)
      expect(await ask('/pods', 'POST')).toBe(405)
      for (const path of [
        '/checkpoint/default/web/main',
        '/api/v1/nodes/box/proxy/checkpoint/default/web/main',
      ])
        expect(await ask(path, 'POST')).toBe(404)
      for (const path of ['/api/v1/secrets', '/podd/v1/status', '/podd/v1/drain', '/api/v1/pods'])
        expect(await ask(path)).toBe(404)
    } finally {
      await port.close(0)
    }
  })
})
