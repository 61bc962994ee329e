/**
 * What `npm run bench -- sources` measures, in a process of its own with podd's settings of V8: node sources-side.ts COUNT. The
 * directory source is podd's own, as are the loops; the runtime is one in memory. Prints one line of JSON.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { silentLogger } from '../../src/base/logger.ts'
import type { SourceSnapshot } from '../../src/pod/objects/document.ts'
import { createDecodeSource } from '../../src/sources/decode-source.ts'
import { createDirectorySource } from '../../src/sources/directory/directory-source.ts'
import { createLastGoodStore } from '../../src/store/last-good.ts'
import { PodRig } from '../../test/component/control/pod-rig.ts'

const rounds = 30
const count = Number(process.argv[2])

/** Wall time and CPU of all threads, in milliseconds. */
export interface Took {
  readonly wallMs: number
  readonly cpuMs: number
}

export interface SourcesReport {
  /** From the start of the source to its first snapshot, with all manifests read, decoded and validated. */
  readonly read: Took
  /** From that snapshot until all pods, which run, were compared with it. */
  readonly compared: Took
  /** From the rename of one manifest until its pod has its new label, with what follows of that. */
  readonly changed: readonly Took[]
}

const root = mkdtempSync(join(tmpdir(), 'podd-bench-sources-'))
const directory = join(root, 'pods')
mkdirSync(directory)
for (let pod = 0; pod < count; pod += 1) publish(pod, 'v0')

const decode = createDecodeSource(systemClock)
// Loads the modules: an installed podd has them in one file, which takes some 12 ms.
await decode(Buffer.from(manifest(0, 'v0')), { path: 'first' })

const rig = new PodRig()
let waits:
  | { readonly passes: (snapshot: SourceSnapshot) => boolean; readonly resolve: () => void }
  | undefined
let newest: SourceSnapshot | undefined
const offer = (snapshot: SourceSnapshot): void => {
  newest = snapshot
  rig.system.offerSnapshot(snapshot)
  if (waits?.passes(snapshot) === true) waits.resolve()
}
function until(passes: (snapshot: SourceSnapshot) => boolean): Promise<void> {
  if (newest !== undefined && passes(newest)) return Promise.resolve()
  return new Promise((resolve) => (waits = { passes, resolve }))
}

let read: Took = { wallMs: 0, cpuMs: 0 }
// The second start finds records and pods, as after an upgrade of podd.
for (const isSecond of [false, true]) {
  newest = undefined
  rig.boot()
  await rig.settle()
  const stop = new AbortController()
  const source = createDirectorySource({
    name: 'file',
    path: directory,
    clock: systemClock,
    logger: silentLogger,
    // Its own, so that no copy of the first start stands in for manifests that aren't decoded yet.
    lastGood: createLastGoodStore(join(root, `state-${isSecond}`)),
    decode,
  })
  let running: Promise<void> | undefined
  let snapshot: SourceSnapshot | undefined
  const first = Promise.withResolvers<void>()
  const reading = await measure(async () => {
    running = source.run((given) => {
      if (snapshot === undefined && given.ready && given.pods.length === count) snapshot = given
      if (snapshot !== given) offer(given)
      else first.resolve()
    }, stop.signal)
    await first.promise
  })
  // A podd that starts has run none of its code yet.
  if (!isSecond) read = reading
  const compared = await measure(async () => {
    if (snapshot !== undefined) offer(snapshot)
    await rig.settle()
  })
  if (isSecond) {
    const changed: Took[] = []
    for (let round = -3; round < rounds; round += 1) {
      const version = `v${round}`
      const took = await measure(async () => {
        publish(0, version)
        // The first by its name.
        await until(({ pods }) => pods[0]?.pod.metadata.labels['version'] === version)
        await rig.settle()
        // The last good copy is written behind it.
        await systemClock.sleep(30)
      })
      // The first rounds warm up.
      if (round >= 0) changed.push(took)
    }
    const report: SourcesReport = { read, compared, changed }
    console.log(JSON.stringify(report))
  }
  stop.abort()
  await running
  await rig.terminate()
}
rmSync(root, { recursive: true, force: true })
process.exit()

async function measure(act: () => Promise<unknown>): Promise<Took> {
  const began = performance.now()
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return { wallMs: performance.now() - began, cpuMs: (user + system) / 1000 }
}

/** As `mv` does. */
function publish(pod: number, version: string): void {
  const file = join(directory, `.p${pod}.yaml.new`)
  writeFileSync(file, manifest(pod, version))
  renameSync(file, join(directory, `p${pod}.yaml`))
}

/** What a service's manifest looks like: some 1.5 KiB of YAML. */
function manifest(pod: number, version: string): string {
  return `apiVersion: v1
kind: Pod
metadata:
  name: web-${pod}
  labels:
    app: web-${pod}
    version: ${version}
  annotations:
    description: "the web server of shop ${pod}, with its metrics and its logs"
spec:
  terminationGracePeriodSeconds: 20
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    fsGroup: 1000
  volumes:
  - name: data
    emptyDir: {sizeLimit: 64Mi}
  - name: cache
    hostPath: {path: /var/cache/web-${pod}, type: DirectoryOrCreate}
  containers:
  - name: main
    image: app:1
    args: ["--listen=:8080", "--name=web-${pod}", "--verbose"]
    env:
    - {name: SHOP, value: "${pod}"}
    - name: POD_IP
      valueFrom: {fieldRef: {fieldPath: status.podIP}}
    ports:
    - {name: http, containerPort: 8080}
    resources:
      requests: {cpu: 1m, memory: 1Mi}
      limits: {cpu: 100m, memory: 64Mi}
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: cache, mountPath: /cache}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
  - name: side
    image: side:1
    command: [sh, -c, "exec tail -F /data/log"]
    volumeMounts:
    - {name: data, mountPath: /data, readOnly: true}
`
}
