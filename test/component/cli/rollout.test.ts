import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { WorkloadObject, WorkloadRevisionObject } from '../../../src/api/cluster-objects.ts'
import type { UnitObject } from '../../../src/api/sources.ts'
import { formatTime } from '../../../src/base/clock.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'
import { podObject } from '../../support/pod-objects.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const podd = (line: string): Promise<CliOutcome> =>
  callCli(line.split(' '), { env: { PODD_SOCKET: rig.socketPath } })

function deployment(status: WorkloadObject['status']): WorkloadObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default', uid: 'u', generation: 1 },
    spec: { replicas: 2 },
    status,
  }
}

describe('podd rollout status', () => {
  it('ends when all pods are new and available', async () => {
    rig.deployments.put(deployment({ replicas: 2, updatedReplicas: 1, availableReplicas: 2 }))
    const waiting = podd('rollout status deploy/web')
    await expect.poll(() => rig.deployments.subscriptions).toBe(1)
    rig.deployments.put(deployment({ replicas: 2, updatedReplicas: 2, availableReplicas: 2 }))
    expect(await waiting).toMatchObject({
      exitCode: 0,
      stdout: 'deployment "web" successfully rolled out\n',
      stderr: expect.stringContaining('Waiting for deployment "web": 1 of 2 pods are new'),
    })
  })

  it('fails as soon as its template has failed, and says why', async () => {
    const failed = {
      type: 'Progressing',
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: 'pod default/web-0 is not Ready 8 s after its change',
    }
    const counts = { replicas: 2, updatedReplicas: 2, availableReplicas: 1 }
    rig.deployments.put(deployment(counts))
    const waiting = podd('rollout status deploy/web')
    await expect.poll(() => rig.deployments.subscriptions).toBe(1)
    rig.deployments.put(deployment({ ...counts, conditions: [failed] }))
    expect(await waiting).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        'deployment "web" exceeded its progress deadline: pod default/web-0 is not Ready 8 s after its change',
      ),
    })
  })

  const isAll = { replicas: 2, updatedReplicas: 2, availableReplicas: 2 }
  const isPart = { ...isAll, availableReplicas: 1 }
  const unit = (
    name: string,
    status: Partial<UnitObject['status']> & Pick<UnitObject['status'], 'state'>,
  ) => ({
    apiVersion: 'podd.dev/v1' as const,
    kind: 'Unit' as const,
    metadata: { name },
    spec: { source: name.startsWith('api:') ? 'api' : 'file' },
    status: { active: 1, offered: 1, progressing: [], revisions: [], ...status },
  })
  const fromFile = (status: WorkloadObject['status'], path: string): WorkloadObject => {
    const { metadata, ...rest } = deployment(status)
    const annotations = { 'podd.dev/source': 'file', 'podd.dev/path': path }
    return { ...rest, metadata: { ...metadata, annotations } }
  }
  const rolledBack = {
    state: 'RolledBack',
    active: 1,
    offered: 2,
    message: 'revision 2 failed, and revision 1 counts again',
  } as const
  const failed = (workloads: Readonly<Record<string, string>> | undefined) => ({
    state: 'Failed' as const,
    message: 'revision 1 failed, and none is kept to go back to: pod default/other-0 has crashed 3 times',
    revisions: [
      {
        number: 1,
        hash: 'a',
        time: '2026-01-01T00:00:00Z',
        verdict: 'Failed' as const,
        pods: 3,
        failure: {
          reason: 'CrashLoopBackOff',
          message: '',
          time: '2026-01-01T00:00:00Z',
          containers: [],
          workloads,
        },
      },
    ],
  })

  it('fails where the newest of its file was rolled back, though all pods of the one before are there', async () => {
    rig.deployments.put(fromFile(isAll, '/manifests/web.yaml'))
    rig.units = [unit('/manifests/web.yaml', rolledBack)]
    expect(await podd('rollout status deploy/web')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(rolledBack.message),
    })
  })

  it('does not take a failure from before for one of a file that was written just now', async () => {
    const path = join(rig.directory, 'web.yaml')
    await writeFile(path, '')
    rig.deployments.put(fromFile(isAll, path))
    rig.units = [unit(path, rolledBack)]
    const waiting = podd('rollout status deploy/web')
    const early = new Promise((resolve) => setTimeout(() => resolve('waits'), 300))
    expect(await Promise.race([waiting, early])).toBe('waits')
    rig.units = [unit(path, { state: 'Progressing', active: 3, offered: 3 })]
    expect(await waiting).toMatchObject({ exitCode: 0 })
  })

  it('tells of the failure of a file that was written just now and is the same as before', async () => {
    const path = join(rig.directory, 'web.yaml')
    await writeFile(path, '')
    rig.deployments.put(fromFile(isAll, path))
    rig.units = [unit(path, rolledBack)]
    expect(await podd('rollout status deploy/web')).toMatchObject({ exitCode: 1 })
  })

  it('does not fail by another workload of its file, but by its own', async () => {
    const path = '/manifests/web.yaml'
    rig.deployments.put(fromFile(isPart, path))
    rig.units = [
      unit(path, failed({ 'Deployment/default/other': 'pod default/other-0 has crashed 3 times' })),
    ]
    const waiting = podd('rollout status deploy/web')
    await expect.poll(() => rig.deployments.subscriptions).toBe(1)
    rig.units = [unit(path, failed({ 'Deployment/default/web': 'pod default/web-1 has crashed 3 times' }))]
    expect(await waiting).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('has failed: pod default/web-1 has crashed 3 times'),
    })
  })

  it.each([
    ['by another', { 'Deployment/default/other': 'x' }],
    ['by what podd of an older version does not name', undefined],
  ])('ends where its file has failed %s while all its pods are there', async (_what, workloads) => {
    const path = '/manifests/web.yaml'
    rig.deployments.put(fromFile(isAll, path))
    rig.units = [unit(path, failed(workloads))]
    expect(await podd('rollout status deploy/web')).toMatchObject({ exitCode: 0 })
  })

  it('fails once the template of a StatefulSet of the API has failed, though that is not seen in its status', async () => {
    const { metadata, ...rest } = deployment(isPart)
    const annotations = { 'podd.dev/source': 'api' }
    rig.statefulsets.put({ ...rest, kind: 'StatefulSet', metadata: { ...metadata, annotations } })
    const name = 'api:StatefulSet/default/web'
    rig.units = [unit(name, { state: 'Progressing' })]
    const waiting = podd('rollout status sts/web')
    await expect.poll(() => rig.statefulsets.subscriptions).toBe(1)
    rig.units = [unit(name, failed({ 'StatefulSet/default/web': 'pod default/web-1 has crashed 3 times' }))]
    expect(await waiting).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        'the rollout of statefulset "web" has failed: pod default/web-1 has crashed',
      ),
    })
  })

  it('fails when the time is over', async () => {
    rig.deployments.put(deployment({ replicas: 2, updatedReplicas: 2, availableReplicas: 1 }))
    expect(await podd('rollout status deploy/web --timeout 1ms')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('timed out waiting for deployment web: 1 of 2 new pods are available'),
    })
  })
})

describe('the templates that are kept of a Deployment', () => {
  const template = (image: string) => ({ spec: { containers: [{ name: 'main', image }] } })
  const given = (image: string, annotations: Readonly<Record<string, string>>): WorkloadObject => {
    const { metadata, ...rest } = deployment({})
    return {
      ...rest,
      metadata: { ...metadata, annotations },
      spec: { replicas: 2, template: template(image) },
    }
  }
  const revision = (number: number, image: string, uid = 'u'): WorkloadRevisionObject => ({
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `web-${number}`,
      namespace: 'default',
      uid: `${uid}-${number}`,
      creationTimestamp: formatTime(Date.now() - 60_000 * (10 - number)),
      annotations: {
        'deployment.kubernetes.io/revision': String(number),
        ...(number === 2 && { 'kubernetes.io/change-cause': 'a new page' }),
      },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: 'web',
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: { template: template(image) },
    status: {},
  })
  const file = { 'podd.dev/source': 'file', 'podd.dev/path': '/manifests/web.yaml' }

  it('are listed by podd rollout history, oldest first, with which is wanted and why it came', async () => {
    rig.deployments.put(given('app:2', file))
    for (const each of [revision(2, 'app:2'), revision(1, 'app:1'), revision(3, 'other:1', 'v')])
      rig.replicasets.put(each)
    const { stdout } = await podd('rollout history deploy/web')
    expect(stdout.split('\n').map((line) => line.split(/  +/u))).toEqual([
      ['REVISION', 'AGE', 'NOW', 'IMAGES', 'CHANGE-CAUSE'],
      ['1', expect.any(String), '<none>', 'app:1', '<none>'],
      ['2', expect.any(String), 'wanted', 'app:2', 'a new page'],
      [''],
    ])
    expect(await podd('rollout history deploy/web --revision 1')).toMatchObject({
      stdout: 'spec:\n  containers:\n    - name: main\n      image: app:1\n',
    })
    expect(await podd('rollout history deploy/web --revision 7')).toMatchObject({
      exitCode: 1,
      stderr: 'podd: revision 7 of deployment.apps/web is not kept\nThere are 1, 2.\n',
    })
  })

  it.each([
    ['that a file gives', file, '/manifests/web.yaml'],
    ['that a URL gives', { 'podd.dev/source': 'http:fleet', 'podd.dev/path': 'https://x' }, 'http:fleet'],
  ])('of one %s are gone back to by its unit, with podd rollout undo', async (_what, annotations, unit) => {
    rig.deployments.put(given('app:2', annotations))
    const status = { state: 'Healthy', active: 2, offered: 2, progressing: [], revisions: [] } as const
    const spec = { source: annotations['podd.dev/source'] }
    rig.units = [{ apiVersion: 'podd.dev/v1', kind: 'Unit', metadata: { name: unit }, spec, status }]
    expect(await podd('rollout undo deploy/web --to-revision 2')).toMatchObject({
      exitCode: 0,
      stdout: `revision 2 of ${unit} counts until its source gives something new, or \`podd resume ${unit}\`\n`,
    })
    await podd('rollout undo deploy/web')
    expect(rig.rollbacks).toEqual([`${unit} to 2`, `${unit} to the one before`])
  })
})

describe('podd describe of a CronJob', () => {
  it('shows its schedule, its template, its Jobs and the pods of these, with their events', async () => {
    const owner = (kind: string, name: string, uid: string) => ({
      ownerReferences: [
        { apiVersion: 'batch/v1', kind, name, uid, controller: true, blockOwnerDeletion: true } as const,
      ],
    })
    const spec = { template: { spec: { containers: [{ name: 'main', image: 'dump:1' }] } } }
    const meta = (name: string, uid: string) => ({ name, namespace: 'default', uid, generation: 1 })
    rig.cronjobs.put({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { ...meta('backup', 'c'), creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { schedule: '0 3 * * *', concurrencyPolicy: 'Forbid', jobTemplate: { spec } },
      status: { lastScheduleTime: '2026-01-02T03:00:00Z' },
    })
    rig.jobs.put({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { ...meta('backup-1', 'j'), ...owner('CronJob', 'backup', 'c') },
      spec: { ...spec, completions: 1 },
      status: { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] },
    })
    rig.pods.put(podObject({ name: 'backup-1-0', metadata: owner('Job', 'backup-1', 'j') }))
    rig.pods.put(podObject({ name: 'web' }))
    const { stdout, exitCode } = await podd('describe cj backup')
    expect(exitCode).toBe(0)
    for (const line of [
      /^Schedule: +0 3 \* \* \*$/mu,
      /^Concurrency Policy: +Forbid$/mu,
      /^ +Image: +dump:1$/mu,
      /^Last Schedule Time: +Fri, 02 Jan 2026 03:00:00 \+0000$/mu,
      /^ +backup-1 +Complete +1\/1$/mu,
      /^ +backup-1-0 +\d\/\d/mu,
      /^Events: +<none>$/mu,
    ])
      expect(stdout).toMatch(line)
    expect(stdout).not.toMatch(/^ +web/mu)
  })
})

describe('what podd rolls out and scales', () => {
  it.each([
    ['rollout undo deploy/web --to-revision x', '--to-revision must be the number of a revision'],
    ['rollout pause sts/web', 'takes Deployment only, not statefulset'],
    ['create configmap settings', 'podd create takes jobs only'],
    ['create job now --from deploy/web', 'deploy/web is no CronJob'],
    ['create job now', 'create a job from what?'],
    ['rollout status job/once', 'takes Deployment, StatefulSet, DaemonSet only, not job'],
    ['rollout history pod/web', '`podd history` shows the revisions of files and URLs of pods.'],
    ['rollout deploy/web', 'rollout what?'],
    ['scale deploy/web', 'scale to how many?'],
    ['scale ds/web --replicas 2', 'takes Deployment, StatefulSet only, not daemonset'],
  ])('is told by `podd %s`', async (line, message) => {
    expect(await podd(line)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) })
  })
})
