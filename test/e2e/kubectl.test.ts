import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { kubectlSuites, loginKubectl } from '../support/kubectl.ts'
import type { Kubectl } from '../support/kubectl.ts'
import { freePort } from '../support/free-port.ts'
import { shellPod } from '../support/shell-pods.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'
import { slowness } from '../support/slowness.ts'

const port = await freePort()

const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
    - name: main
      image: ${shell}
      command: [sh, -c, 'echo hello from web; trap "exit 0" TERM; httpd -f -p 8080 -h /conf & wait']
      ports: [{containerPort: 8080}]
      volumeMounts: [{name: conf, mountPath: /conf}]
  volumes: [{name: conf, configMap: {name: conf}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {key: value}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {key: hush-hush}
`

function residentBytes(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) * 1024
}

/** Command lines that podd answers with the same text as kubectl, and with the same exit code. */
const alike: readonly (readonly string[])[] = [
  ...[
    '{.metadata.name} {.spec.containers[*].name}',
    '{.spec.containers[0:1].image}{.spec.containers[-1:].image}{.spec.volumes[::2].name}',
    "{.metadata['name','namespace']}{.metadata.labels}",
    '{..containerPort}',
    '{range .status.conditions[?(@.status=="True")]}{.type}{"\\t"}{end}',
    '{range .spec.containers[*]}{range .ports[*]}{.containerPort}{"\\n"}{end}{end}',
    '{.spec.containers[0]}{.nothing[3].x}{$.kind}{@.apiVersion}',
    '{.spec.containers[7].name}',
    '{.spec.containers[?(@.name==3)].name}',
    '{.metadata[*]}',
  ].map((template) => ['get', 'pod', 'web', '-o', `jsonpath=${template}`]),
  ...[
    'get pods -A -o jsonpath={.items[*].metadata.name}',
    'get pods,cm,secrets -o name',
    'get pod/web secret/hidden -o jsonpath={.kind}{.items[*].kind}',
    'get secrets -o jsonpath-as-json={.items[*].metadata.name}',
    'get pods --no-headers -o custom-columns=N:.metadata.name,L:.metadata.labels,P:.spec.containers[*].ports',
    'get cm,secret --sort-by .metadata.name -o custom-columns=N:.metadata.name',
    'get pods --sort-by .metadata.nothing -o name',
    'get pods -l app,app!=db -o name',
    'get pods web gone --ignore-not-found -o name',
    'get namespaces --show-labels',
    'get priorityclasses -o name',
    'logs web --tail=1 --prefix',
    'logs -l app=web -c main --ignore-errors',
    'logs web -f=false',
  ].map((line) => line.split(' ')),
]

/** What a command prints, which must end well and say nothing on standard error. */
async function output(kubectl: Kubectl, line: string): Promise<string> {
  const { code, stdout, stderr } = await kubectl(line.split(' '))
  expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: '' })
  return stdout
}

const header = (text: string): readonly string[] => text.split('\n')[0]?.trim().split(/ {2,}/u) ?? []

/** Rows of a table without what depends on the moment. */
const rowsOf = (text: string): readonly (readonly string[])[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) =>
      line
        .replaceAll(/\(\S+ ago\)/gu, '(ago)')
        .trim()
        .split(/ {2,}/u)
        .slice(0, 4),
    )

describePodd('kubectl', { config: { api: { listen: `127.0.0.1:${port}` } } }, (podd) => {
  describe.each(kubectlSuites)('of Debian %s', (suite) => {
    it(
      'shows the pods as podd get does, whatever their state, with the defaults of their fields',
      async () => {
        const rig = podd()
        const states = {
          'is-broken': shellPod('is-broken', rig.shared, 'exit 3'),
          'is-done': shellPod('is-done', rig.shared, 'exit 0', { spec: { restartPolicy: 'Never' } }),
          'has-no-image': shellPod('has-no-image', rig.shared, 'stay', {
            container: { image: 'localhost/none:1', imagePullPolicy: 'Never' },
          }),
          'has-no-room': shellPod('has-no-room', rig.shared, 'stay', {
            container: { resources: { requests: { memory: '900Ti' } } },
          }),
          'is-probed': shellPod('is-probed', rig.shared, 'stay', {
            container: {
              ports: [{ containerPort: 1880 }],
              livenessProbe: { exec: { command: ['true'] } },
            },
          }),
        }
        for (const [name, pod] of Object.entries(states)) rig.drop(name, pod)
        await rig.untilReady('is-probed')
        await rig.untilPod('is-done', 'done', ({ status }) => status.phase === 'Succeeded')
        await rig.untilPod('has-no-room', 'blocked', ({ status }) => status.reason === 'Blocked')
        const kubectl = await loginKubectl(rig, suite, { user: `same-${suite}`, role: 'admin' })
        // A container may be started again in between.
        await rig.until('the same tables', async () => {
          const own = rowsOf(await rig.cliOk('get', 'pods'))
          const others = rowsOf(await output(kubectl, 'get pods'))
          return JSON.stringify(own) === JSON.stringify(others) && own.length > 5 ? true : undefined
        })
        const described = await output(kubectl, 'describe pod is-probed')
        expect(described).toMatch(/^ +Port: +1880\/TCP$/mu)
        expect(described).toMatch(/delay=0s timeout=1s period=10s #success=1 #failure=3/u)
        const drained = await kubectl(['drain', 'box'])
        expect(drained.code).toBe(1)
        expect(drained.stderr).toContain('`podd drain` ends its pods')
        for (const name of Object.keys(states)) {
          rig.removeManifest(name)
          await rig.untilGone(name)
        }
      },
      120_000 * slowness,
    )

    it(
      'reads what runs on the host',
      async () => {
        const rig = podd()
        rig.dropText('web.yaml', manifest)
        await rig.untilReady('web')
        const kubectl = await loginKubectl(rig, suite, { user: `admin-${suite}`, role: 'admin' })
        const print = (line: string): Promise<string> => output(kubectl, line)

        const pods = await print('get pods -o wide')
        expect(header(pods)).toEqual([
          'NAME',
          'READY',
          'STATUS',
          'RESTARTS',
          'AGE',
          'IP',
          'NODE',
          'NOMINATED NODE',
          'READINESS GATES',
        ])
        expect(pods).toMatch(/^web +1\/1 +Running +0 /mu)
        expect(header(await print('get pods -A'))[0]).toBe('NAMESPACE')
        expect(await print('get all')).toMatch(/^pod\/web +1\/1 +Running /mu)
        expect(await print('get pod web -o jsonpath={.status.phase}')).toBe('Running')
        expect(await print('get pods -l app=web -o name')).toBe('pod/web\n')
        expect(await print('logs web')).toBe('hello from web\n')
        expect(await print('wait pod/web --for=condition=Ready --timeout=60s')).toContain('condition met')

        const ofPods = '/api/v1/namespaces/default/pods'
        for (const name of ['web', 'web:8080', 'http:web:8080'])
          expect(await print(`get --raw ${ofPods}/${name}/proxy/key`)).toBe('value')
        expect((await kubectl(['get', '--raw', `${ofPods}/web:81/proxy/key`])).stderr).toContain(
          'ServiceUnavailable',
        )

        const described = await print('describe pod web')
        expect(described).toMatch(/^Status: +Running$/mu)
        expect(described).toMatch(/Normal +Started .*kubelet/u)
        expect(await print('events --for pod/web')).toContain('Started')
        expect(header(await print('get events'))).toEqual([
          'LAST SEEN',
          'TYPE',
          'REASON',
          'OBJECT',
          'MESSAGE',
        ])
        expect(header(await print('get configmaps'))).toEqual(['NAME', 'DATA', 'AGE'])
        expect(await print('get secrets')).toMatch(/^hidden +Opaque +1 /mu)
        expect(await print('get secret hidden -o jsonpath={.data.key}')).toBe(
          Buffer.from('hush-hush').toString('base64'),
        )
        expect(await print('get namespaces')).toMatch(/^kube-system +Active /mu)
        expect(await print('get serviceaccounts')).toMatch(/^default /mu)
        expect(await print('get priorityclasses')).toMatch(/^system-node-critical +2000001000 +false /mu)

        const node = await print('get nodes -o jsonpath={.items[0].metadata.name}')
        expect(await print('get nodes -o wide')).toMatch(
          new RegExp(`^${node} +Ready +<none> .*containerd://`, 'mu'),
        )
        const nodeDescribed = await print(`describe node ${node}`)
        expect(nodeDescribed).toContain('Allocatable:')
        expect(nodeDescribed).toMatch(/^ +RenewTime: /mu)
        expect(nodeDescribed).toMatch(/default +web /u)
        expect(await print('top nodes')).toContain(node)
        expect(await print('top pods --containers')).toMatch(/^web +main +\d+m +\d+Mi/mu)
        expect(await print('explain pod.spec.hostNetwork')).toContain('FIELD: hostNetwork <boolean>')
        expect(await print('auth whoami')).toContain('system:masters')
        expect(await print('api-versions')).toContain('metrics.k8s.io/v1beta1')
        const missing = await kubectl(['get', 'pod', 'other'])
        expect(missing).toMatchObject({
          code: 1,
          stderr: 'Error from server (NotFound): pods "other" not found\n',
        })
      },
      180_000 * slowness,
    )

    it(
      'prints what podd prints',
      async () => {
        const rig = podd()
        rig.dropText('web.yaml', manifest)
        await rig.untilReady('web')
        const kubectl = await loginKubectl(rig, suite, { user: `alike-${suite}`, role: 'admin' })
        for (const words of alike) {
          const [theirs, ours] = await Promise.all([kubectl(words), rig.cli(...words)])
          expect({ words, code: ours.code, stdout: ours.stdout }).toEqual({
            words,
            code: theirs.code,
            stdout: theirs.stdout,
          })
        }
      },
      180_000 * slowness,
    )

    it(
      'lists and watches 1,000 objects, in chunks',
      async () => {
        const rig = podd()
        const names = Array.from({ length: 1000 }, (_, index) => `many-${String(index).padStart(4, '0')}`)
        const documents = names.map(
          (name) =>
            `{apiVersion: v1, kind: ConfigMap, metadata: {name: ${name}, labels: {set: many}}, data: {k: v}}`,
        )
        rig.dropText('many.yaml', documents.join('\n---\n'))
        const kubectl = await loginKubectl(rig, suite, { user: `many-${suite}`, role: 'admin' })
        const list = 'get configmaps -l set=many -o name'
        await rig.until('all objects', async () => (await output(kubectl, list)).split('\n').length === 1001)
        const wanted = names.map((name) => `configmap/${name}`)
        const beforeBytes = residentBytes(rig.daemonPid)
        const timed = async (what: string, line: string): Promise<string> => {
          const startMs = performance.now()
          const printed = await output(kubectl, line)
          told.push(`${what} ${Math.round(performance.now() - startMs)} ms`)
          return printed
        }
        const told: string[] = []
        for (const size of [0, 100, 500])
          expect(
            (await timed(`chunks of ${size}`, `${list} --chunk-size=${size}`)).trim().split('\n'),
          ).toEqual(wanted)
        const table = await timed('table', 'get configmaps -l set=many')
        expect(table.trim().split('\n')).toHaveLength(1001)
        const path = '/api/v1/namespaces/default/configmaps?labelSelector=set%3Dmany'
        const raw: string[] = []
        let next = ''
        do {
          const page: { metadata: { continue?: string }; items: { metadata: { name: string } }[] } =
            JSON.parse(
              await output(kubectl, `get --raw ${path}&limit=300&continue=${encodeURIComponent(next)}`),
            )
          raw.push(...page.items.map(({ metadata }) => metadata.name))
          next = page.metadata.continue ?? ''
        } while (next !== '')
        expect(raw).toEqual(names)
        const initial = 'sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan'
        const watched = await timed('watch', `get --raw ${path}&watch=true&timeoutSeconds=1&${initial}`)
        expect(watched.split('\n').filter((line) => line.startsWith('{"type":"ADDED"'))).toHaveLength(1000)
        const grown = ((residentBytes(rig.daemonPid) - beforeBytes) / 1024 ** 2).toFixed(1)
        process.stdout.write(
          `1,000 objects with kubectl of ${suite}: ${told.join(', ')}; podd grew by ${grown} MiB\n`,
        )
        rig.removeManifest('many')
        await rig.until('no object', async () => (await kubectl(list.split(' '))).stdout === '')
      },
      180_000 * slowness,
    )

    it(
      'shows a viewer all but Secrets',
      async () => {
        const rig = podd()
        const kubectl = await loginKubectl(rig, suite, { user: `ann-${suite}`, role: 'view' })
        expect(await output(kubectl, 'get pods')).toMatch(/^web /mu)
        expect(await output(kubectl, 'auth can-i get pods')).toBe('yes\n')
        const secrets = await kubectl(['get', 'secrets'])
        expect(secrets).toMatchObject({ code: 1, stdout: '' })
        expect(secrets.stderr).toContain(`User "ann-${suite}" cannot list resource "secrets"`)
        expect((await kubectl(['auth', 'can-i', 'get', 'secrets'])).stdout).toBe('no\n')
      },
      60_000 * slowness,
    )
  })
})
