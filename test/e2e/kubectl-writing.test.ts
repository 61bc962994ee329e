import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { kubectlSuites, loginKubectl } from '../support/kubectl.ts'
import type { Kubectl, KubectlCall } from '../support/kubectl.ts'
import { describePodd } from '../support/podd-rig.ts'
import { otherShell, shell } from '../support/podd-program.ts'
import { slowness } from '../support/slowness.ts'

const port = await freePort()

const stay = 'echo hello; trap "exit 0" TERM; sleep 1000000 & wait'

function web(image: string, value: string, tier?: string): object {
  const container = {
    name: 'main',
    image,
    command: ['sh', '-c', stay],
    env: [{ name: 'A', value }],
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', labels: { app: 'web', ...(tier !== undefined && { tier }) } },
    spec: { terminationGracePeriodSeconds: 2, containers: [container] },
  }
}

function conf(a: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf' }, data: { a } }
}

const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'claim' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
}

const manifests: Readonly<Record<string, object>> = {
  'web.json': web(shell, 'b'),
  'image.json': web(otherShell, 'b', 'front'),
  'env.json': web(otherShell, 'c', 'front'),
  'typo.json': { ...web(shell, 'b'), specc: {} },
  'strange.json': {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'web' },
    spec: {},
  },
  'deployment.json': {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'front' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'front' } },
      template: {
        metadata: { labels: { app: 'front' } },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'main', image: shell, command: ['sh', '-c', stay] }],
        },
      },
    },
  },
  'each.json': {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'each' },
    spec: {
      selector: { matchLabels: { app: 'each' } },
      template: {
        metadata: { labels: { app: 'each' } },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'main', image: shell, command: ['sh', '-c', stay] }],
        },
      },
    },
  },
  'vendor.json': { apiVersion: 'v1', kind: 'List', items: vendorItems() },
  'cron.json': {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'yearly' },
    spec: {
      schedule: '0 0 1 1 *',
      jobTemplate: {
        spec: {
          template: {
            spec: {
              restartPolicy: 'Never',
              containers: [{ name: 'main', image: shell, command: ['echo', 'done'] }],
            },
          },
        },
      },
    },
  },
  'conf-1.json': conf('1'),
  'conf-2.json': conf('2'),
  'conf-3.json': conf('3'),
  'claim.json': claim,
  'list.json': {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { x: '1' } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'two' }, stringData: { x: '1' } },
    ],
  },
}

/** What the file of a vendor has: what is to run, and who may ask an API server for it. */
function vendorItems(): readonly object[] {
  const group = 'rbac.authorization.k8s.io'
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }]
  const subjects = [{ kind: 'ServiceAccount', name: 'vendor', namespace: 'default' }]
  const of = (apiVersion: string, kind: string, name: string, fields: object): object => ({
    apiVersion,
    kind,
    metadata: { name, labels: { app: 'front' } },
    ...fields,
  })
  return [
    of('v1', 'ServiceAccount', 'vendor', { automountServiceAccountToken: false }),
    of(`${group}/v1`, 'Role', 'vendor', { rules }),
    of(`${group}/v1`, 'RoleBinding', 'vendor', {
      roleRef: { apiGroup: group, kind: 'Role', name: 'vendor' },
      subjects,
    }),
    of(`${group}/v1`, 'ClusterRole', 'system:vendor', { rules }),
    of(`${group}/v1`, 'ClusterRoleBinding', 'system:vendor', {
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'system:vendor' },
      subjects,
    }),
    of('policy/v1', 'PodDisruptionBudget', 'vendor', {
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'front' } } },
    }),
    of('storage.k8s.io/v1', 'StorageClass', 'vendor', { provisioner: 'disks.example' }),
    of('networking.k8s.io/v1', 'IngressClass', 'vendor', { spec: { controller: 'proxy.example/web' } }),
    of('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'fronts.vendor.example', {
      spec: {
        group: 'vendor.example',
        scope: 'Namespaced',
        names: { plural: 'fronts', singular: 'front', kind: 'Front' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
        ],
      },
    }),
    of('v1', 'Service', 'front', { spec: { selector: { app: 'front' }, ports: [{ port: 80 }] } }),
    of('apps/v1', 'Deployment', 'front', {
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'front' } },
        template: {
          metadata: { labels: { app: 'front' } },
          spec: {
            serviceAccountName: 'vendor',
            terminationGracePeriodSeconds: 1,
            containers: [{ name: 'main', image: shell, command: ['sh', '-c', stay] }],
          },
        },
      },
    }),
  ]
}

/** As an API server says it, up to the difference of Go structures that it adds. */
const frozen =
  'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`'

/** kubectl in a directory of manifests and a namespace. */
class Session {
  readonly #kubectl: Kubectl
  readonly #namespace: string
  readonly #directory: string

  constructor(kubectl: Kubectl, namespace: string, directory: string) {
    this.#kubectl = kubectl
    this.#namespace = namespace
    this.#directory = directory
    mkdirSync(directory)
    for (const [name, manifest] of Object.entries(manifests))
      writeFileSync(join(directory, name), JSON.stringify(manifest))
  }

  path(name: string): string {
    return join(this.#directory, name)
  }

  /** A line whose words have no spaces; `@name` is a file of the directory. */
  async run(
    line: string | readonly string[],
    call?: KubectlCall,
  ): Promise<{ line: string; code: number; stdout: string; stderr: string }> {
    const words = typeof line === 'string' ? line.split(' ') : line
    const args = ['-n', this.#namespace, ...words].map((word) =>
      word.startsWith('@') ? this.path(word.slice(1)) : word,
    )
    const result = await this.#kubectl(args, call)
    return { line: words.join(' '), ...result }
  }

  /** What a command prints, which must end well. */
  async print(line: string | readonly string[], call?: KubectlCall): Promise<string> {
    const { line: words, code, stdout, stderr } = await this.run(line, call)
    if (code !== 0) throw new Error(`kubectl ${words} exited with ${code}:\n${stdout}${stderr}`)
    // Newer ones say it, older ones do not.
    return stdout.replaceAll(/ deleted from \S+ namespace/gu, ' deleted')
  }

  /** What a command that is refused says. */
  async refused(line: string | readonly string[], code = 1): Promise<string> {
    const { stderr, ...result } = await this.run(line)
    expect(result).toMatchObject({ code })
    return stderr
  }
}

describePodd('kubectl that writes', { config: { api: { listen: `127.0.0.1:${port}` } } }, (podd) => {
  describe.each(kubectlSuites)('of Debian %s', (suite) => {
    const start = async (room: string): Promise<Session> => {
      const rig = podd()
      const namespace = `${room}-${suite}`
      const kubectl = await loginKubectl(rig, suite, { user: namespace, role: 'admin' })
      const session = new Session(kubectl, namespace, join(rig.directory, namespace))
      expect(await session.print(`create namespace ${namespace}`)).toBe(`namespace/${namespace} created\n`)
      return session
    }

    it(
      'creates, applies, patches, edits and deletes objects',
      async () => {
        const at = await start('objects')
        expect(await at.print('create -f @list.json')).toBe('configmap/one created\nsecret/two created\n')
        expect(await at.refused('create -f @list.json')).toContain('(AlreadyExists): error when creating')
        expect(await at.print('delete -f @list.json')).toBe('configmap "one" deleted\nsecret "two" deleted\n')
        expect(await at.refused('create -f @typo.json')).toContain(
          'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "specc"',
        )
        expect(await at.refused('apply -f @strange.json')).toContain(
          'no matches for kind "Ingress" in version "networking.k8s.io/v1"',
        )

        expect(await at.print('apply -f @conf-1.json')).toBe('configmap/conf created\n')
        expect(await at.print('apply -f @conf-1.json')).toBe('configmap/conf unchanged\n')
        const different = await at.run('diff -f @conf-2.json')
        expect(different).toMatchObject({ code: 1, stdout: expect.stringContaining('+  a: "2"\n') })
        expect(await at.print('diff -f @conf-1.json')).toBe('')
        expect(await at.print('apply -f @conf-2.json --dry-run=server')).toBe(
          'configmap/conf configured (server dry run)\n',
        )
        expect(await at.print('apply -f @conf-2.json')).toBe('configmap/conf configured\n')
        expect(await at.print('apply --server-side -f @conf-3.json')).toBe(
          'configmap/conf serverside-applied\n',
        )
        expect(await at.print('apply view-last-applied cm conf')).toContain('a: "3"')
        const conflict = await at.refused('apply --server-side --field-manager=other -f @conf-2.json')
        expect(conflict).toContain('Apply failed with 1 conflict: conflict with "kubectl": .data.a')
        expect(
          await at.print('apply --server-side --field-manager=other --force-conflicts -f @conf-2.json'),
        ).toBe('configmap/conf serverside-applied\n')
        expect(await at.print('replace -f @conf-1.json')).toBe('configmap/conf replaced\n')
        expect(await at.print('replace --force -f @conf-1.json')).toBe(
          'configmap "conf" deleted\nconfigmap/conf replaced\n',
        )

        const patch = (type: string, text: string) => at.print(`patch cm conf --type=${type} -p ${text}`)
        expect(await patch('strategic', '{"data":{"b":"2"}}')).toBe('configmap/conf patched\n')
        expect(await patch('merge', '{"data":{"b":null}}')).toBe('configmap/conf patched\n')
        expect(await patch('json', '[{"op":"add","path":"/data/z","value":"y"}]')).toBe(
          'configmap/conf patched\n',
        )
        expect(await patch('merge', '{"data":{"z":"y"}}')).toBe('configmap/conf patched (no change)\n')
        expect(
          await at.refused([
            'patch',
            'cm',
            'conf',
            '--type=json',
            '-p',
            '[{"op":"remove","path":"/data/no"}]',
          ]),
        ).toMatch(/^The request is invalid/u)
        writeFileSync(at.path('editor'), '#!/bin/sh\nsed -i \'s/a: "1"/a: "9"/\' "$1"\n', { mode: 0o755 })
        expect(await at.print('edit cm conf', { env: { KUBE_EDITOR: at.path('editor') } })).toBe(
          'configmap/conf edited\n',
        )
        expect(await at.print('get cm conf -o jsonpath={.data}')).toBe('{"a":"9","z":"y"}')

        expect(await at.print('create configmap made --from-literal=a=b')).toBe('configmap/made created\n')
        expect(await at.refused('create configmap made --from-literal=a=b')).toBe(
          'error: failed to create configmap: configmaps "made" already exists\n',
        )
        expect(await at.print('create secret generic hidden --from-literal=a=b')).toBe(
          'secret/hidden created\n',
        )
        expect(await at.print('create configmap empty')).toBe('configmap/empty created\n')
        expect(await at.print('get cm empty -o yaml')).not.toMatch(/^data:/mu)
        expect(await at.print('label cm made empty x=y')).toBe(
          'configmap/made labeled\nconfigmap/empty labeled\n',
        )
        expect(await at.print('delete cm -l x=y --dry-run=server')).toContain(
          '"made" deleted (server dry run)',
        )
        expect(await at.print('delete cm -l x=y')).toBe(
          'configmap "empty" deleted\nconfigmap "made" deleted\n',
        )
        expect(await at.print('delete secret --all')).toBe('secret "hidden" deleted\n')
        expect(await at.refused('delete cm made')).toBe(
          'Error from server (NotFound): configmaps "made" not found\n',
        )
        expect(await at.print('delete cm made --ignore-not-found')).toBe('')

        expect(await at.print('apply -f @claim.json')).toBe('persistentvolumeclaim/claim created\n')
        expect(await at.print('get pvc')).toMatch(/^claim +Pending +podd-local /mu)
        expect(await at.print('label pvc claim x=y')).toBe('persistentvolumeclaim/claim labeled\n')
        expect(await at.print('describe priorityclass system-node-critical')).toMatch(/^Description: +\S/mu)
      },
      240_000 * slowness,
    )

    it(
      'makes, scales, restarts and removes a Deployment, and starts a Job of a CronJob',
      async () => {
        const at = await start('workloads')
        expect(await at.print('apply -f @deployment.json')).toBe('deployment.apps/front created\n')
        expect(await at.print('rollout status deploy/front --timeout=120s')).toContain(
          'deployment "front" successfully rolled out',
        )
        expect(await at.print('get deploy front --no-headers')).toMatch(/^front +1\/1 +1 +1 +/u)
        expect(await at.print('get all -o name')).toBe('pod/front-0\ndeployment.apps/front\n')
        expect(await at.print('logs deploy/front')).toBe('hello\n')
        expect(await at.print('scale deploy/front --replicas=2')).toBe('deployment.apps/front scaled\n')
        await at.print('rollout status deploy/front --timeout=120s')
        const uid = 'get pod front-0 -o jsonpath={.metadata.uid}'
        const before = await at.print(uid)
        await podd().cliOk('rollout', 'restart', 'deploy/front', '-n', `workloads-${suite}`)
        await at.print('rollout status deploy/front --timeout=120s')
        expect(await at.print(uid)).not.toBe(before)
        await at.print('rollout restart deploy/front')
        const kept = await at.print('rollout history deploy/front')
        const owned = ['deploy/front', '-n', `workloads-${suite}`]
        await podd().cliOk('scale', ...owned, '--replicas', '3')
        await at.print('label deploy front tier=front')
        await podd().cliOk('scale', ...owned, '--replicas', '2')
        await podd().cliOk('rollout', 'status', ...owned, '--timeout', '120s')
        expect(await at.print('rollout history deploy/front')).toBe(kept)

        const variable = 'get deploy front -o jsonpath={.spec.template.spec.containers[0].env}'
        await at.print('annotate deploy front kubernetes.io/change-cause=plain')
        await at.print('set env deploy/front A=2')
        await at.print('rollout status deploy/front --timeout=120s')
        const history = await at.print('rollout history deploy/front')
        expect(history).toMatch(/^\d+ +plain\n\d+ +plain$/mu)
        const numbers = history.split('\n').flatMap((line) => /^(\d+)\s/u.exec(line)?.[1] ?? [])
        expect(numbers.length).toBeGreaterThanOrEqual(3)
        expect(await at.print(`rollout history deploy/front --revision=${numbers.at(-1)}`)).toMatch(/A:\s+2/u)
        expect(await at.print('describe deploy front')).toMatch(
          /^NewReplicaSet:\s+front-\w+ \(2\/2 replicas/mu,
        )
        expect(await at.print('describe pod front-0')).toMatch(/^Controlled By:\s+Deployment\/front$/mu)
        expect(await at.print('rollout undo deploy/front')).toBe('deployment.apps/front rolled back\n')
        await at.print('rollout status deploy/front --timeout=120s')
        expect(await at.print(variable)).toBe('')
        expect(await at.print(`rollout undo deploy/front --to-revision=${numbers.at(-1)}`)).toContain(
          'rolled back',
        )
        expect(await at.print(variable)).toContain('"2"')
        expect(await podd().cliOk('rollout', 'undo', ...owned)).toBe('deployment.apps/front rolled back\n')
        expect(await at.print(variable)).toBe('')
        await at.print('rollout status deploy/front --timeout=120s')
        expect(await podd().cliOk('rollout', 'history', ...owned)).toMatch(/^\d+ +\S+ +wanted /mu)
        expect(await podd().cliOk('describe', ...owned)).toMatch(/^ +front-0 +1\/1 +Running/mu)
        expect(await at.print('rollout pause deploy/front')).toBe('deployment.apps/front paused\n')
        expect(await at.print('rollout resume deploy/front')).toBe('deployment.apps/front resumed\n')
        await at.print('rollout status deploy/front --timeout=120s')
        const [node = ''] = (await at.print('get nodes -o name')).trim().split('/').slice(1)
        const drained = await at.run(`drain ${node} --dry-run=client --pod-selector=app=front`)
        expect(drained.stdout + drained.stderr).toMatch(/front-0/u)
        expect(drained.stderr).not.toMatch(/declare no controller/u)
        await at.print('delete deploy/front')
        await at.print('wait --for=delete pod/front-1 --timeout=120s')

        await at.print('apply -f @each.json')
        await at.print('rollout status ds/each --timeout=120s')
        await at.print('set env ds/each A=2')
        await at.print('rollout status ds/each --timeout=120s')
        expect(await at.print('rollout history ds/each')).toMatch(/^2\s+<none>$/mu)
        expect(await at.print('rollout undo ds/each')).toBe('daemonset.apps/each rolled back\n')
        await at.print('rollout status ds/each --timeout=120s')
        expect(await at.print('get pod each-0 -o jsonpath={.spec.containers[0].env}')).toBe('')
        expect(await at.print('describe ds each')).toMatch(/^Pods Status:\s+1 Running/mu)
        await at.print('delete ds/each')

        await at.print('apply -f @cron.json')
        expect(await at.print('describe cj yearly')).toMatch(/^Schedule:\s+0 0 1 1 \*$/mu)
        expect(await at.print('create job --from=cronjob/yearly now')).toBe('job.batch/now created\n')
        await at.print('wait --for=condition=complete job/now --timeout=120s')
        expect(await at.print('describe job now')).toMatch(/^Pods Statuses:\s+0 Active .*1 Succeeded/mu)
        const named = ['-n', `workloads-${suite}`]
        await podd().cliOk('create', 'job', 'again', '--from', 'cronjob/yearly', ...named)
        await at.print('wait --for=condition=complete job/again --timeout=120s')
        expect(await podd().cliOk('describe', 'cj', 'yearly', ...named)).toMatch(/^ +again +Complete +1\/1/mu)
        expect(await at.print('logs job/now')).toBe('done\n')
        expect(await at.print('get cj yearly --no-headers')).toMatch(
          /^yearly +0 0 1 1 \* +<none> +False +0 +<none>/u,
        )
      },
      240_000 * slowness,
    )

    it(
      'applies and deletes a file of a vendor as a whole, with what has no effect on one host',
      async () => {
        const at = await start('vendor')
        const everything = [
          'serviceaccount/vendor',
          'role.rbac.authorization.k8s.io/vendor',
          'rolebinding.rbac.authorization.k8s.io/vendor',
          'clusterrole.rbac.authorization.k8s.io/system:vendor',
          'clusterrolebinding.rbac.authorization.k8s.io/system:vendor',
          'poddisruptionbudget.policy/vendor',
          'storageclass.storage.k8s.io/vendor',
          'ingressclass.networking.k8s.io/vendor',
          'customresourcedefinition.apiextensions.k8s.io/fronts.vendor.example',
          'service/front',
          'deployment.apps/front',
        ]
        const applied = await at.run('apply -f @vendor.json')
        expect(applied).toMatchObject({
          code: 0,
          stdout: everything.map((each) => `${each} created\n`).join(''),
        })
        expect(applied.stderr).toContain('ServiceAccount vendor is kept without effect')
        const again = await at.run('apply -f @vendor.json')
        expect(again).toMatchObject({
          code: 0,
          // Of a budget kubectl writes the selector each time: it is replaced, not merged.
          stdout: everything
            .map((each) => `${each} ${each.startsWith('pod') ? 'configured' : 'unchanged'}\n`)
            .join(''),
        })
        await at.print('apply --server-side --force-conflicts -f @vendor.json')
        expect(await at.print('get sa,role,pdb,clusterrole -o name')).toBe(
          'serviceaccount/default\nserviceaccount/vendor\nrole.rbac.authorization.k8s.io/vendor\n' +
            'poddisruptionbudget.policy/vendor\nclusterrole.rbac.authorization.k8s.io/system:vendor\n',
        )
        expect(await at.print('describe rolebinding vendor')).toContain('vendor')
        expect(await at.print('create serviceaccount made')).toBe('serviceaccount/made created\n')
        expect(await at.print('create role made --verb=get --resource=pods')).toBe(
          'role.rbac.authorization.k8s.io/made created\n',
        )
        expect(await at.print('create pdb made --selector=app=front --min-available=1')).toBe(
          'poddisruptionbudget.policy/made created\n',
        )
        expect(
          await at.print([
            'create',
            'deployment',
            'made',
            `--image=${shell}`,
            '--',
            'sh',
            '-c',
            'sleep 1000',
          ]),
        ).toBe('deployment.apps/made created\n')
        await at.print('delete deployment,role,pdb,serviceaccount made')
        expect(await at.print('delete -f @vendor.json')).toContain(
          'poddisruptionbudget.policy "vendor" deleted',
        )
        expect(await at.print('get role,clusterrole -o name')).toBe('')
      },
      240_000 * slowness,
    )

    it(
      'changes pods as far as they may change, and ends them',
      async () => {
        const at = await start('pods')
        expect(await at.print('create -f @web.json --save-config')).toBe('pod/web created\n')
        expect(await at.print('wait pod/web --for=condition=Ready --timeout=120s')).toBe(
          'pod/web condition met\n',
        )
        expect(await at.print('apply -f @image.json')).toBe('pod/web configured\n')
        for (const line of ['apply -f @env.json', 'set env pod/web A=c'])
          expect(await at.refused(line)).toContain(frozen)
        // It puts the version that it has read: a conflict where the container's start has changed the status since.
        await expect.poll(() => at.refused('replace -f @env.json')).toContain(frozen)
        expect(await at.refused('diff -f @env.json', 2)).toContain(frozen)
        expect(await at.print(`set image pod/web main=${shell}`)).toBe('pod/web image updated\n')
        expect(await at.print('set env pod/web --list')).toBe('# Pod web, container main\nA=b\n')
        expect(await at.print('label pod web tier=back --overwrite')).toBe('pod/web labeled\n')
        expect(await at.refused('label pod web tier=front')).toContain("'tier' already has a value (back)")
        expect(await at.print('annotate pod web note=hello')).toBe('pod/web annotated\n')
        expect(await at.print('annotate pod web note-')).toBe('pod/web annotated\n')
        const resize = '{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"10m"}}}]}}'
        expect(await at.refused(`patch pod web --subresource=resize -p ${resize}`)).toContain(
          'Pod QOS Class may not change as a result of resizing',
        )

        expect(await at.refused('scale pod web --replicas=2')).toBe(
          'Error from server (NotFound): the server could not find the requested resource\n',
        )
        // kubectl 1.32 says it otherwise.
        expect(await at.refused('scale deployment web --replicas=2')).toMatch(
          /^(Error from server \(NotFound\):|error: no objects passed to scale) deployments\.apps "web" not found\n+$/u,
        )
        expect(await at.refused('rollout restart pod/web')).toBe(
          'error: pods "web" restarting is not supported\n',
        )
        expect(await at.print('expose pod web --port=80')).toBe('service/web exposed\n')
        expect(await at.print('get svc')).toMatch(/^web +ClusterIP +<none> +<none> +80\/TCP/mu)
        expect(await at.print('describe service web')).toMatch(/^Endpoints: +\d+\.\d+\.\d+\.\d+:80$/mu)
        expect(await at.print('get endpointslices -l kubernetes.io/service-name=web')).toMatch(/^web-ipv4 /mu)
        expect(await at.refused('patch svc web --type=merge -p {"spec":{"type":"NodePort"}}')).toContain(
          'write hostPort into the pod',
        )
        expect(await at.print('delete service web')).toMatch(/^service "web" deleted/u)
        expect(await at.refused('create token default')).toContain(
          'the server could not find the requested resource',
        )
        expect(await at.refused('taint node box a=b:NoSchedule')).not.toBe('')
        expect(await at.print('cluster-info')).toContain(`https://127.0.0.1:${port}`)
        expect(await at.print('get services')).toBe('')
        expect(await at.print('auth can-i create pods')).toBe('yes\n')
        expect(await at.print('auth can-i --list')).toMatch(/^\*\.\* /mu)
        expect(await at.print('api-resources -o name')).toContain('pods.metrics.k8s.io\n')

        const dry = [
          'run',
          'dry',
          `--image=${shell}`,
          '--dry-run=server',
          '-o',
          'jsonpath={.metadata.generation} {.spec.priority} {.status.qosClass}',
        ]
        expect(await at.print(dry)).toBe('1 0 BestEffort')
        expect(await at.print(`run idle --image=${shell}`)).toBe('pod/idle created\n')
        expect(await at.print('delete pod idle --now')).toBe('pod "idle" deleted\n')
        expect(await at.refused('wait pod/web --for=delete --timeout=1s')).toContain(
          'timed out waiting for the condition on pods/web',
        )
        expect(await at.print('delete pod -l app=web --wait=false --grace-period=1')).toBe(
          'pod "web" deleted\n',
        )
        expect((await at.run('wait pod/web --for=delete --timeout=120s')).code).toBe(0)
        await at.print('create -f @web.json')
        expect(await at.print('delete pod web --force --cascade=foreground')).toBe(
          'pod "web" force deleted\n',
        )
        expect(await at.print('get pods')).toBe('')
        await at.print('create -f @web.json')
        const namespace = `pods-${suite}`
        expect(await at.print(`delete namespace ${namespace}`)).toBe(`namespace "${namespace}" deleted\n`)
        expect(await at.refused('get pod web')).toContain('(NotFound)')
      },
      240_000 * slowness,
    )

    it(
      'runs commands, attaches, copies, debugs and forwards ports',
      async () => {
        const at = await start('streams')
        await at.print('create -f @web.json')
        await at.print('wait pod/web --for=condition=Ready --timeout=120s')
        const failed = await at.run(['exec', 'web', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3'])
        expect(failed).toMatchObject({
          code: 3,
          stdout: 'out\n',
          stderr: 'err\ncommand terminated with exit code 3\n',
        })
        expect(await at.print('exec -i web -- cat', { input: 'given' })).toBe('given')
        expect(await at.print('exec -it web -- tty', { tty: true })).toContain('/dev/pts/')
        expect(await at.refused('exec web -- no-such-program')).toContain('no-such-program')
        expect(await at.refused('exec nope -- true')).toBe(
          'Error from server (NotFound): pods "nope" not found\n',
        )

        const run = (name: string): string => `run ${name} --rm --restart=Never --image=${shell} -q`
        const once = await at.run(
          [...`${run('one')} -it --`.split(' '), 'sh', '-c', 'sleep 1; tty; exit 4'],
          {
            tty: true,
          },
        )
        expect(once).toMatchObject({ code: 4, stdout: expect.stringContaining('/dev/pts/') })
        expect(await at.print(`${run('two')} -i -- cat`, { input: 'given' })).toBe('given')
        for (const name of ['one', 'two'])
          expect((await at.run(`wait pod/${name} --for=delete --timeout=120s`)).code).toBe(0)
        await at.print(`run caught --restart=Never -i --attach=false --image=${shell} --command -- cat`)
        await at.print('wait pod/caught --for=condition=Ready --timeout=120s')
        expect((await at.run('attach caught -i -q', { input: 'words' })).stdout).toBe('words')
        expect(await at.print('logs caught')).toBe('words')

        mkdirSync(at.path('tree'))
        const blob = Buffer.alloc(3_000_000, 'some bytes')
        writeFileSync(at.path('tree/blob'), blob)
        await at.print('cp @tree web:/tmp')
        await at.print(['cp', 'web:/tmp/tree', at.path('back')])
        expect(readFileSync(at.path('back/blob')).equals(blob)).toBe(true)
        expect(await at.refused('cp @web.json web:/no/such/place')).toContain(
          'command terminated with exit code 1',
        )

        const debug = `debug web --image=${shell} --profile=general`
        const looking = [...`${debug} -c looks -it -q --target=main --`.split(' '), 'sh', '-c', 'sleep 1; ps']
        expect(await at.print(looking, { tty: true })).toContain('sleep 1000000')
        expect(await at.print('get pod web -o jsonpath={.spec.ephemeralContainers[*].name}')).toBe('looks')
        await at.print(`${debug} --copy-to=copy -c looks -- sleep 100000`)
        expect(await at.print('delete pod copy caught --now')).toBe(
          'pod "copy" deleted\npod "caught" deleted\n',
        )

        const serve = 'mkdir /tmp/www && echo page >/tmp/www/index.html && httpd -p 8080 -h /tmp/www'
        await at.print(['exec', 'web', '-c', 'main', '--', 'sh', '-c', serve])
        const local = await freePort()
        const forwarding = at.run(`port-forward web ${local}:8080`)
        const page = await podd().until('the forwarded port', async () => {
          const answer = await fetch(`http://127.0.0.1:${local}/`).catch(() => undefined)
          return answer?.text()
        })
        expect(page).toBe('page\n')
        await at.print('delete pod web --now')
        expect(await fetch(`http://127.0.0.1:${local}/`).catch(() => 'refused')).toBe('refused')
        expect((await forwarding).stderr).toContain('lost connection to pod')
      },
      240_000 * slowness,
    )
  })
})
