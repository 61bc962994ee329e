import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { logDirectory, logFiles } from '../support/numbered-log.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'

/** The kubelet's GetAllLogs doesn't count those that are being made either. */
function wholeFiles(podd: PoddRig, pod: string): string[] {
  return logFiles(podd, pod).filter((name) => !name.endsWith('.tmp'))
}

const never = { spec: { restartPolicy: 'Never' } }
const line = 'hello world '.repeat(10)
/** Some 25 KiB a second, so that each look at the logs rotates them. */
const talk = `while true; do for n in 1 2 3 4 5 6 7 8; do echo ${line}; done; sleep 0.05; done`
const record = (second: number, text: string): string =>
  `2026-01-01T00:${String(Math.floor(second / 60)).padStart(2, '0')}:${String(second % 60).padStart(2, '0')}.000000001Z stdout F ${text}\n`

/** How much a process has read so far, of files, pipes and sockets. */
function readBytes(pid: number): number {
  return Number(/^rchar: (?<bytes>\d+)$/mu.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.groups?.['bytes'])
}

/** Kubernetes' own: test/e2e_node/container_log_rotation_test.go. */
describe('ContainerLogRotation', () => {
  const config = { containerLogMaxFiles: 3, containerLogMaxSize: '40Ki', containerLogMonitorInterval: '3s' }

  /** Waits for three files of each pod, then watches two more rotations of each; gives the most files that one had. */
  async function maxFiles(podd: PoddRig, pods: readonly string[]): Promise<number> {
    let most = 0
    for (const pod of pods) podd.drop(pod, shellPod(pod, podd.shared, talk, never))
    for (const pod of pods) await podd.untilReady(pod)
    for (const pod of pods)
      await podd.until(`three log files of ${pod}`, () => wholeFiles(podd, pod).length === 3, 180_000)
    const newest = (): string[] => pods.map((pod) => wholeFiles(podd, pod).at(-1) ?? '')
    for (const rotation of [1, 2]) {
      const before = newest()
      await podd.until(`rotation ${rotation}`, () => {
        most = Math.max(most, ...pods.map((pod) => wholeFiles(podd, pod).length))
        return newest().every((name, index) => name !== before[index])
      })
    }
    for (const pod of pods) podd.removeManifest(pod)
    for (const pod of pods) await podd.untilGone(pod)
    return most
  }

  describePodd('one worker', { config }, (rig) => {
    it(
      // id: log-rotation
      'when a container generates a lot of log should be rotated and limited to a fixed amount of files',
      { tags: ['nightly'] },
      async () => {
        expect(await maxFiles(rig(), ['talker'])).toBe(3)
      },
    )
  })

  describePodd('two workers', { config: { ...config, containerLogMaxWorkers: 2 } }, (rig) => {
    it(
      // id: log-rotation-workers
      'when containers generate a lot of logs should be rotated and limited to a fixed amount of files',
      { tags: ['nightly'] },
      async () => {
        expect(await maxFiles(rig(), ['talker-0', 'talker-1'])).toBe(3)
      },
    )
  })
})

describePodd('logs', { config: { removedPodLogMaxAge: '1h' } }, (rig) => {
  /** Kubernetes' own: test/e2e_node/log_path_test.go. */
  describe('ContainerLogPath Pod with a container printed log to stdout', () => {
    const text = 'This is the expected log content of this node e2e test'

    /** Has a pod look for the text in a file of the host; gives the phase in which it ends. */
    async function lookInto(podd: PoddRig, checker: string, path: string): Promise<string> {
      const script = `while true; do if [ -e /log ] && grep -q "${text}" /log; then exit 0; fi; sleep 1; done`
      podd.drop(
        checker,
        shellPod(checker, podd.shared, script, {
          ...never,
          mounts: [{ name: 'log', mountPath: '/log', readOnly: true }],
          volumes: [{ name: 'log', hostPath: { path, type: 'FileOrCreate' } }],
        }),
      )
      const { status } = await podd.untilPhase(checker, 'Succeeded')
      podd.removeManifest(checker)
      return status.phase
    }

    // id: log-path
    it('should print log to correct log path', async () => {
      const podd = rig()
      podd.drop('log-pod', shellPod('log-pod', podd.shared, `echo ${text}`, never))
      const { status } = await podd.untilPhase('log-pod', 'Succeeded')
      const id = status.containerStatuses?.[0]?.containerID?.replace('containerd://', '')
      const path = join(podd.linksDir, `log-pod_default_main-${id}.log`)
      expect(await lookInto(podd, 'log-check', path)).toBe('Succeeded')
    })

    // id: log-path-cri
    it('should print log to correct cri log path', async () => {
      const podd = rig()
      podd.drop('log-pod', shellPod('log-pod', podd.shared, `echo ${text}`, never))
      const { metadata } = await podd.untilPhase('log-pod', 'Succeeded')
      const path = join(podd.logsDir, `default_log-pod_${metadata.uid}`, 'main', '0.log')
      expect(await lookInto(podd, 'log-cri-check', path)).toBe('Succeeded')
      podd.removeManifest('log-pod')
      await podd.untilGone('log-pod')
    })
  })

  it('gives the last lines of 1 GiB without reading the rest', async () => {
    const podd = rig()
    podd.drop('large', shellPod('large', podd.shared, 'say up; stay'))
    await podd.untilReady('large')
    const lines = Array.from({ length: 1000 }, (_, index) => record(index, `line ${index}`)).join('')
    const path = join(logDirectory(podd, 'large'), '0.log.20260101-000000')
    const file = await open(path, 'w')
    // A hole between them, which a reader takes for so many bytes.
    for (const at of [0, 1024 ** 3]) await file.write(lines, at)
    await file.close()
    const before = readBytes(podd.daemonPid)
    const text = await podd.cliOk('logs', 'large', '--tail=10')
    expect(text).toBe(Array.from({ length: 10 }, (_, index) => `line ${index + 990}\n`).join(''))
    expect(readBytes(podd.daemonPid) - before).toBeLessThan(32 * 1024 ** 2)
    podd.removeManifest('large')
    await podd.untilGone('large')
  })

  it('joins what the runtime splits, tells streams apart, follows to the end of the container, and is kept', async () => {
    const podd = rig()
    const script = `
head -c 40000 /dev/zero | tr '\\0' x; echo
echo to stderr >&2
say written; while [ ! -e /shared/go ]; do sleep 0.1; done
printf 'no newline'`
    podd.drop('mixed', shellPod('mixed', podd.shared, script, never))
    await podd.untilLine('mixed', / written$/u)
    const following = podd.spawnCli('logs', '-f', 'mixed')
    await podd.until('what was written', () => following.output().includes('to stderr\n'))
    podd.touchShared('go')
    expect(await once(following.child, 'close')).toEqual([0, null])
    const stdout = following.output()
    const wanted = ['x'.repeat(40_000), 'to stderr', 'no newline']
    expect(stdout.trimEnd().split('\n').toSorted()).toEqual(wanted.toSorted())
    expect(await podd.cliOk('logs', 'mixed', '--limit-bytes=5')).toHaveLength(5)
    expect(await podd.cliOk('logs', 'mixed', '--since-time=2099-01-01T00:00:00Z')).toBe('')
    expect(await podd.cliOk('logs', 'mixed', '--timestamps', '--prefix', '--tail=1')).toMatch(
      /^\[pod\/mixed\/main\] \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\S+ no newline\n?$/u,
    )
    podd.removeShared('go')
    podd.removeManifest('mixed')
    await podd.untilGone('mixed')
    const kept = await podd.cli('logs', 'mixed')
    expect(kept).toMatchObject({ code: 0, stderr: 'Pod "mixed" was removed; its log was kept.\n' })
    expect(kept.stdout === stdout).toBe(true)
  })

  it('are there of a pod with the longest names, and gone with it', async () => {
    const podd = rig()
    // With `default`, 217 characters; the directory of its logs has 255.
    const name = 'n'.repeat(210)
    const container = 'c'.repeat(63)
    const volume = 'v'.repeat(63)
    const metadata = { labels: { app: 'l'.repeat(63) }, annotations: { note: 'a'.repeat(1000) } }
    const claim = 'p'.repeat(253)
    podd.drop(
      'longest',
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: claim },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
      },
      podOf(
        name,
        podd.shared,
        [
          shellContainer(
            container,
            'longest',
            `echo of $(hostname); echo kept >/claim/file; [ -e /part/again ] && stay; touch /part/again; exit 1`,
            {
              volumeMounts: [
                { name: volume, mountPath: '/part', subPath: 'a/b' },
                { name: 'claim', mountPath: '/claim' },
              ],
              readinessProbe: { exec: { command: ['test', '-e', '/part/again'] }, periodSeconds: 1 },
            },
          ),
        ],
        {
          metadata: { name, ...metadata },
          volumes: [
            { name: volume, emptyDir: {} },
            { name: 'claim', persistentVolumeClaim: { claimName: claim } },
          ],
        },
      ),
    )
    const restarted = await podd.untilPod(name, 'restarted and ready', ({ status }) => {
      const [only] = status.containerStatuses ?? []
      return only?.restartCount === 1 && only.ready
    })
    const { uid } = restarted.metadata
    const line = `of ${'n'.repeat(63)}\n`
    expect(await podd.cliOk('logs', name)).toBe(line)
    const directory = `default_${name}_${uid}`
    expect(directory).toHaveLength(255)
    const links = (): readonly string[] => readdirSync(podd.linksDir).filter((link) => link.startsWith('nnn'))
    // That of the container that exited remains while the container does.
    const targets = links().map((link) => readlinkSync(join(podd.linksDir, link)))
    const paths = ['0.log', '1.log'].map((log) => join(podd.logsDir, directory, container, log))
    expect(targets.toSorted()).toEqual(paths)
    expect(readFileSync(paths[1] ?? '', 'utf8')).toContain(line)
    expect(readFileSync(join(podd.rootDir, 'claims/default', claim, 'file'), 'utf8')).toBe('kept\n')
    podd.removeManifest('longest')
    await podd.untilGone(name)
    expect(links()).toEqual([])
    expect(existsSync(join(podd.rootDir, 'pods', uid))).toBe(false)
    expect(await podd.cliOk('get', 'pvc', claim, '-o', 'jsonpath={.status.phase}')).toBe('Released')
    expect(await podd.cliOk('logs', name)).toBe(line)
  })

  it('of a pod with longer names have no place, so it is refused', async () => {
    const podd = rig()
    const name = 'n'.repeat(211)
    podd.drop('longer', shellPod(name, podd.shared, 'stay'))
    const problem = await podd.until('the problem', async () => {
      const { problems } = await podd.status()
      return problems.find(({ place }) => place.path.endsWith('longer.yaml'))
    })
    expect(problem).toMatchObject({
      field: 'metadata.name',
      message: expect.stringContaining('217 characters'),
    })
    expect(await podd.pods()).toEqual([])
    podd.removeManifest('longer')
  })
})

describePodd(
  'the limit of all logs',
  {
    config: {
      containerLogMaxSize: '200Ki',
      containerLogMaxFiles: 100,
      containerLogMonitorInterval: '3s',
      containerLogTotalMaxSize: '1Mi',
    },
  },
  (rig) => {
    it(
      'removes the oldest rotated logs of whatever pod, and never what is written to',
      { tags: ['nightly'] },
      async () => {
        const podd = rig()
        const pods = ['old', 'young']
        const totalBytes = (): number =>
          pods
            .flatMap((pod) => logFiles(podd, pod).map((name) => join(logDirectory(podd, pod), name)))
            .reduce((sum, path) => sum + statSync(path).size, 0)
        podd.drop(
          'old',
          shellPod('old', podd.shared, `head -c 3000000 /dev/urandom | base64; say done; stay`),
        )
        await podd.untilLine('old', / done$/u)
        await podd.until('its rotation', () => logFiles(podd, 'old').length > 1)
        podd.drop('young', shellPod('young', podd.shared, 'echo kept; say done; stay'))
        await podd.untilLine('young', / done$/u)
        expect(totalBytes()).toBeGreaterThan(1024 ** 2)
        await podd.until('the limit', () => totalBytes() <= 1024 ** 2, 90_000)
        expect(logFiles(podd, 'old')).toContain('0.log')
        expect(await podd.cliOk('logs', 'young')).toBe('kept\n')
        const jobs = (await podd.status()).jobs
        expect(jobs.find(({ name }) => name === 'limit-logs')?.error).toBeUndefined()
      },
    )
  },
)
