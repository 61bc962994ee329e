import { expect, it } from 'vitest'
import type { UnitObject } from '../../src/api/sources.ts'
import { callApi } from '../support/call-api.ts'
import { freePort } from '../support/free-port.ts'
import { loginKubectl } from '../support/kubectl.ts'
import { proves } from '../support/proves.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'

/** A web server, which is Ready once it answers. */
function template(name: string, change: object = {}, spec: object = {}): object {
  return {
    metadata: { labels: { app: name } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: shell,
          command: ['httpd', '-f', '-p', '8080', '-h', '/etc'],
          readinessProbe: { httpGet: { path: '/passwd', port: 8080 }, periodSeconds: 1 },
          ...change,
        },
      ],
      ...spec,
    },
  }
}

function workload(kind: string, name: string, spec: object): object {
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name },
    spec: { selector: { matchLabels: { app: name } }, template: template(name), ...spec },
  }
}

async function uids(podd: PoddRig, ...names: readonly string[]): Promise<readonly string[]> {
  const pods = await Promise.all(names.map((name) => podd.untilReady(name)))
  return pods.map(({ metadata }) => metadata.uid)
}

/** A file that is written twice in a row may be read in between: that is a revision of its own. */
async function untilHealthy(podd: PoddRig, revision: number): Promise<void> {
  await podd.until(`revision ${revision}, or a later one, to be healthy`, async () => {
    const units = await podd.get<readonly UnitObject[]>('/podd/v1/units')
    return units.some(({ status }) => status.active >= revision && status.state === 'Healthy')
  })
}

const config = { updates: { minReady: '2s', progressDeadline: '20s' } }

describePodd('workloads that run on', { config }, (rig) => {
  it(
    'a Deployment by file appears, is rolled one pod after the other, and is taken back where its template is bad',
    proves(
      'deployment',
      'Deployment: apiVersion kind metadata spec',
      'DeploymentSpec: replicas selector template strategy minReadySeconds paused progressDeadlineSeconds',
      'DeploymentStrategy: type rollingUpdate',
      'RollingUpdateDeployment: maxUnavailable',
      'PodTemplateSpec: metadata spec',
      'LabelSelector: matchLabels matchExpressions',
      'LabelSelectorRequirement: key operator values',
    ),
    async () => {
      const podd = rig()
      const deployment = (change: object, more: object = {}): object =>
        workload('Deployment', 'web', {
          replicas: 2,
          minReadySeconds: 1,
          progressDeadlineSeconds: 20,
          selector: {
            matchLabels: { app: 'web' },
            matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }],
          },
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
          template: template('web', change),
          ...more,
        })
      podd.drop('web', deployment({}))
      const first = await uids(podd, 'web-0', 'web-1')
      await untilHealthy(podd, 1)

      const variable = { env: [{ name: 'V', value: '2' }] }
      podd.drop('web', deployment(variable, { paused: true }))
      podd.drop('web', deployment(variable))
      await podd.untilPod('web-0', 'be replaced', ({ metadata }) => metadata.uid !== first[0])
      expect((await podd.findPod('web-1'))?.metadata.uid).toBe(first[1])
      await podd.untilPod('web-1', 'be replaced', ({ metadata }) => metadata.uid !== first[1])
      const [, second] = await uids(podd, 'web-0', 'web-1')
      await untilHealthy(podd, 2)

      podd.drop('web', deployment({ command: ['httpdd'] }))
      await podd.untilEvent('web-0', 'RolledBack')
      expect((await podd.untilReady('web-0')).spec).toMatchObject({ containers: [variable] })
      expect(await uids(podd, 'web-1')).toEqual([second])

      const before = await uids(podd, 'web-0', 'web-1')
      await podd.restartDaemon('SIGKILL')
      expect(await uids(podd, 'web-0', 'web-1')).toEqual(before)
      podd.removeManifest('web')
      await podd.untilGone('web-0')
      await podd.untilGone('web-1')
    },
  )

  it(
    'a StatefulSet makes its pods in order, each with a name and a claim of its own, and keeps the data',
    proves(
      'stateful-set',
      'StatefulSet: apiVersion kind metadata spec',
      'StatefulSetSpec: replicas selector template volumeClaimTemplates serviceName podManagementPolicy updateStrategy minReadySeconds persistentVolumeClaimRetentionPolicy ordinals',
      'StatefulSetUpdateStrategy: type rollingUpdate',
      'RollingUpdateStatefulSetStrategy: maxUnavailable',
      'StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted whenScaled',
      'StatefulSetOrdinals: start',
    ),
    async () => {
      const podd = rig()
      const writes = {
        command: [
          'sh',
          '-c',
          'hostname >> /data/names; cp /data/names /etc/names; exec httpd -f -p 8080 -h /etc',
        ],
      }
      const set = (replicas: number): object =>
        workload('StatefulSet', 'db', {
          replicas,
          serviceName: 'db',
          podManagementPolicy: 'OrderedReady',
          minReadySeconds: 1,
          ordinals: { start: 1 },
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
          persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
          volumeClaimTemplates: [
            {
              apiVersion: 'v1',
              kind: 'PersistentVolumeClaim',
              metadata: { name: 'data' },
              spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
            },
          ],
          template: template('db', { ...writes, volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
        })
      podd.drop('db', set(2))
      const [first, second] = await Promise.all([podd.untilReady('db-1'), podd.untilReady('db-2')])
      const readyAt = first.status.conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? ''
      expect(Date.parse(second.metadata.creationTimestamp ?? '')).toBeGreaterThanOrEqual(Date.parse(readyAt))
      podd.drop('db', set(1))
      await podd.untilGone('db-2')
      podd.drop('db', set(2))
      await podd.untilReady('db-2')
      expect(await podd.cliOk('exec', 'db-2', '--', 'cat', '/data/names')).toBe('db-2\ndb-2\n')
      expect(await podd.cliOk('exec', 'db-1', '--', 'cat', '/data/names')).toBe('db-1\n')
    },
  )

  it(
    'a DaemonSet runs one pod',
    proves(
      'daemon-set',
      'DaemonSet: apiVersion kind metadata spec',
      'DaemonSetSpec: selector template updateStrategy minReadySeconds',
      'DaemonSetUpdateStrategy: type',
    ),
    async () => {
      const podd = rig()
      podd.drop(
        'agent',
        workload('DaemonSet', 'agent', { minReadySeconds: 1, updateStrategy: { type: 'RollingUpdate' } }),
      )
      await podd.untilReady('agent-0')
      expect(await podd.findPod('agent-1')).toBeUndefined()
    },
  )

  it('a pod of a workload that somebody deletes or evicts is replaced under its name, by the newest template', async () => {
    const podd = rig()
    const seen = (name: string) => podd.cliOk('exec', name, '--', 'sh', '-c', 'echo $NEW')
    const updateStrategy = { type: 'OnDelete' }
    const spec = { replicas: 2, podManagementPolicy: 'Parallel', updateStrategy }
    podd.drop('hand', workload('StatefulSet', 'hand', spec))
    const before = await uids(podd, 'hand-0', 'hand-1')
    const env = [{ name: 'NEW', value: 'yes' }]
    podd.drop('hand', workload('StatefulSet', 'hand', { ...spec, template: template('hand', { env }) }))
    await podd.until('the file to be read', async () =>
      (await podd.cliOk('get', 'sts', 'hand', '-o', 'yaml')).includes('NEW'),
    )
    expect(await podd.cliOk('delete', 'pod', 'hand-1')).toBe('pod "hand-1" deleted\n')
    const after = await uids(podd, 'hand-0', 'hand-1')
    expect([after[0], after[1] === before[1]]).toEqual([before[0], false])
    expect(await seen('hand-1')).toBe('yes\n')
    expect(await seen('hand-0')).toBe('\n')
    const pods = '/api/v1/namespaces/default/pods'
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'hand-0' } }
    expect(await callApi(podd.socketPath, 'POST', `${pods}/hand-0/eviction`, eviction)).toMatchObject({
      code: 201,
    })
    await podd.until(
      'the pod to be another one',
      async () => (await podd.findPod('hand-0'))?.metadata.uid !== before[0],
    )
    await podd.untilReady('hand-0')
    expect(await seen('hand-0')).toBe('yes\n')
  })

  it('a pod of a Job that somebody deletes has failed, and the next one runs', async () => {
    const podd = rig()
    const containers = [{ name: 'main', image: shell, command: ['sleep', '1000'] }]
    podd.drop('long', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'long' },
      spec: { template: { spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers } } },
    })
    await podd.untilReady('long-0')
    await podd.cliOk('delete', 'pod', 'long-0')
    await podd.untilReady('long-1')
    expect(await podd.findPod('long-0')).toBeUndefined()
    const { body } = await callApi(podd.socketPath, 'GET', '/apis/batch/v1/namespaces/default/jobs/long')
    expect(body['status']).toMatchObject({ failed: 1, active: 1 })
  })

  it(
    'a Job fails twice and completes, and has run once for its manifest',
    proves(
      'job',
      'Job: apiVersion kind metadata spec',
      'JobSpec: parallelism completions activeDeadlineSeconds podFailurePolicy backoffLimit template ttlSecondsAfterFinished suspend',
      'PodFailurePolicy: rules',
      'PodFailurePolicyRule: action onExitCodes onPodConditions',
      'PodFailurePolicyOnExitCodesRequirement: containerName operator values',
      'PodFailurePolicyOnPodConditionsPattern: type status',
    ),
    async () => {
      const podd = rig()
      const script = 'echo x >> /shared/once; test $(wc -l < /shared/once) -ge 3'
      const job = (change: object = {}): object => ({
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'once' },
        spec: {
          parallelism: 1,
          completions: 1,
          activeDeadlineSeconds: 600,
          backoffLimit: 3,
          podFailurePolicy: {
            rules: [
              {
                action: 'FailJob',
                onExitCodes: { containerName: 'main', operator: 'In', values: [42] },
              },
              { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
            ],
          },
          template: {
            spec: {
              restartPolicy: 'Never',
              volumes: [{ name: 'shared', hostPath: { path: podd.shared } }],
              containers: [
                {
                  name: 'main',
                  image: shell,
                  command: ['sh', '-c', script],
                  volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
                },
              ],
            },
          },
          ...change,
        },
      })
      podd.drop('once', job({ suspend: true }))
      podd.drop('once', job())
      await podd.untilPhase('once-0', 'Failed')
      await podd.untilPhase('once-1', 'Failed')
      await podd.restartDaemon('SIGKILL')
      await podd.untilPhase('once-2', 'Succeeded')
      podd.drop('once', job({ ttlSecondsAfterFinished: 1 }))
      await podd.untilGone('once-2')
      await podd.restartDaemon('SIGTERM')
      await podd.untilReady('agent-0')
      expect(podd.lines('once')).toHaveLength(3)
    },
  )

  it(
    'an Indexed Job runs each index, gives up one of them, and fails in the end',
    proves('indexed-job', 'JobSpec: completionMode backoffLimitPerIndex maxFailedIndexes'),
    async () => {
      const podd = rig()
      podd.drop('parts', {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'parts' },
        spec: {
          completionMode: 'Indexed',
          completions: 2,
          parallelism: 2,
          backoffLimitPerIndex: 0,
          maxFailedIndexes: 1,
          template: {
            spec: {
              restartPolicy: 'Never',
              containers: [
                { name: 'main', image: shell, command: ['sh', '-c', 'exit $JOB_COMPLETION_INDEX'] },
              ],
            },
          },
        },
      })
      await podd.untilPhase('parts-0-0', 'Succeeded')
      const lost = await podd.untilPhase('parts-1-1', 'Failed')
      expect(containerOf(lost, 'main').state.terminated?.exitCode).toBe(1)
    },
  )

  it(
    'a CronJob starts a Job each minute',
    proves(
      'cron-job',
      'CronJob: apiVersion kind metadata spec',
      'CronJobSpec: schedule timeZone startingDeadlineSeconds concurrencyPolicy suspend jobTemplate successfulJobsHistoryLimit failedJobsHistoryLimit',
      'JobTemplateSpec: metadata spec',
    ),
    async () => {
      const podd = rig()
      podd.drop('minutely', {
        apiVersion: 'batch/v1',
        kind: 'CronJob',
        metadata: { name: 'minutely' },
        spec: {
          schedule: '* * * * *',
          timeZone: 'Etc/UTC',
          startingDeadlineSeconds: 600,
          concurrencyPolicy: 'Forbid',
          suspend: false,
          successfulJobsHistoryLimit: 1,
          failedJobsHistoryLimit: 1,
          jobTemplate: {
            metadata: { labels: { made: 'hourly' } },
            spec: {
              template: {
                spec: {
                  restartPolicy: 'OnFailure',
                  containers: [{ name: 'main', image: shell, command: ['date'] }],
                },
              },
            },
          },
        },
      })
      const found = await podd.until('a pod of the CronJob to complete', async () =>
        (await podd.pods()).find(
          ({ metadata, status }) => metadata.name.startsWith('minutely-') && status.phase === 'Succeeded',
        ),
      )
      const minute = Number(found.metadata.name.split('-')[1])
      expect(Math.abs(minute - Date.now() / 60_000)).toBeLessThan(2)
      expect(found.metadata.name).toBe(`minutely-${minute}-0`)
      expect(found.metadata.labels).toMatchObject({ 'job-name': `minutely-${minute}` })
    },
  )
})

const port = await freePort()

describePodd(
  'a Deployment that kubectl applied',
  {
    config: {
      api: { listen: `127.0.0.1:${port}` },
      updates: { minReady: '1s', progressDeadline: '30s', crashes: 2 },
    },
  },
  (rig) => {
    it('goes back to its last healthy template where it asks for that, keeps what was applied, and is undone', async () => {
      const podd = rig()
      const kubectl = await loginKubectl(podd, 'forky', { user: 'dev', role: 'edit' })
      const print = async (line: string, input?: object): Promise<string> => {
        const call = input === undefined ? {} : { input: JSON.stringify(input) }
        const { code, stdout, stderr } = await kubectl(line.split(' '), call)
        if (code !== 0) throw new Error(`kubectl ${line} exited with ${code}:\n${stdout}${stderr}`)
        return stdout
      }
      const deployment = (change: object = {}): object => ({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', annotations: { 'podd.dev/rollback': 'true' } },
        spec: { replicas: 2, selector: { matchLabels: { app: 'web' } }, template: template('web', change) },
      })
      const asked = 'get deploy web -o jsonpath={.spec.template.spec.containers[0].command[0]}'
      const running = 'get pods -o jsonpath={.items[*].spec.containers[0].command[0]}'
      const why = 'get deploy web -o jsonpath={.status.conditions[1].reason}'
      expect(await print('apply -f -', deployment())).toBe('deployment.apps/web created\n')
      await print('rollout status deploy/web --timeout=120s')
      await untilHealthy(podd, 1)
      expect(await print('apply -f -', deployment({ command: ['httpdd'] }))).toBe(
        'deployment.apps/web configured\n',
      )
      await podd.until(
        'the template to have failed',
        async () => (await print(why)) === 'ProgressDeadlineExceeded',
      )
      await uids(podd, 'web-0', 'web-1')
      expect([await print(running), await print(asked)]).toEqual(['httpd httpd', 'httpdd'])
      expect((await kubectl(['rollout', 'status', 'deploy/web', '--timeout=30s'])).code).toBe(1)
      expect(await print('rollout history deploy/web')).toMatch(/^1 .*\n2 /mu)
      expect(await print('rollout undo deploy/web')).toBe('deployment.apps/web rolled back\n')
      await print('rollout status deploy/web --timeout=120s')
      expect([await print(running), await print(asked)]).toEqual(['httpd httpd', 'httpd'])
      expect(await print(why)).toBe('NewReplicaSetAvailable')
    })
  },
)
