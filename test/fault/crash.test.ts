import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { evaluate } from '../support/evaluate.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'
import { versionedFiles } from '../support/state-files.ts'

/** Of files that there are many of: without their names. */
const kindOf = (path: string): string =>
  path.replace(/(?<=records\/|sources\/|worked\/|pulled\/|pulling\/)[^/]+$/u, '')

describePodd('an error that nothing handles', { config: { sourceTrialPeriod: '10h' } }, (rig) => {
  it.each([
    ['a rejected promise', 'void Promise.reject(new Error("planted")); 1'],
    ['an exception', 'setTimeout(() => { throw new Error("planted") }, 0); 1'],
  ])('leaves a report and a new daemon in the same process: %s', async (_title, expression) => {
    const podd = rig()
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    const before = await podd.untilReady('steady')
    const { startedAt, pid, crashes: earlier } = await podd.status()
    // Ages are told by the second.
    await podd.until('another second', () => Date.now() - Date.parse(startedAt) > 1500)
    await evaluate(podd, expression)
    const status = await podd.until('the new daemon', async () => {
      const now = await podd.status()
      return now.startedAt !== startedAt && now.runtime.healthy ? now : undefined
    })
    expect(status.pid).toBe(pid)
    expect(status.crashes).toHaveLength(earlier.length + 1)
    const report = status.crashes.at(-1)?.report ?? ''
    expect(report).toContain(`${podd.rootDir}/crash/`)
    expect(readFileSync(report, 'utf8')).toMatch(/"message": "planted"/u)
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ state: { pods: 1, failingChecks: [] } })
    expect(await podd.cliOk('status')).toContain(report)
    const after = await podd.untilReady('steady')
    expect(containerOf(after, 'main')).toEqual(containerOf(before, 'main'))
    expect(await podd.untilWords('steady', 1)).toEqual(['start'])
  })

  it('is followed by a minute of waiting where it comes again and again, in which the pods run on', async () => {
    const podd = rig()
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    await podd.untilReady('steady')
    const reports = join(podd.rootDir, 'crash')
    const count = (): number => (existsSync(reports) ? readdirSync(reports).length : 0)
    for (let crashes = count() + 1; crashes <= 4; crashes += 1) {
      const { startedAt } = await podd.status()
      await podd.until('another second', () => Date.now() - Date.parse(startedAt) > 1500)
      await evaluate(podd, 'void Promise.reject(new Error("planted again")); 1')
      await podd.until('its report', () => count() === crashes)
      if (crashes < 4)
        await podd.until('the new daemon', async () => (await podd.status()).startedAt !== startedAt)
    }
    await podd.until('the reason', () =>
      readFileSync(join(podd.directory, 'podd.log'), 'utf8').includes(
        'crashes repeatedly, delaying the restart',
      ),
    )
    expect(await podd.untilWords('steady', 1)).toEqual(['start'])
    // It does not answer at its socket but holds its directories: it must not start again what was ended.
    const pid = podd.daemonPid
    expect(await podd.cli('down', ...podd.flags())).toMatchObject({ code: 0 })
    await podd.until('the end of the daemon', () => !existsSync(`/proc/${pid}`))
    await podd.startDaemon()
    await podd.untilReady('steady')
    expect(await podd.untilWords('steady', 3)).toEqual(['start', 'end', 'start'])
  })

  it('brings back the last set that worked where podd crashes again and again after a change, until the next change', async () => {
    const podd = rig()
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    await podd.untilReady('steady')
    const record = (): string => readFileSync(join(podd.rootDir, 'trial.json'), 'utf8')
    const config = join(podd.directory, 'config.yaml')
    const setPeriod = (from: string, to: string): void =>
      writeFileSync(
        config,
        readFileSync(config, 'utf8').replace(`"sourceTrialPeriod":"${from}"`, `"sourceTrialPeriod":"${to}"`),
      )
    setPeriod('10h', '1s')
    await podd.restartDaemon()
    // Written after the copy of the set.
    await podd.until('the set to have worked', () => JSON.parse(record()).worked.file !== undefined)
    const copy = readFileSync(join(podd.rootDir, 'sources/worked/file.json'), 'utf8')
    expect(copy).toContain('steady')
    // However slow the host is: the next sets get no time to prove themselves.
    setPeriod('1s', '10h')
    await podd.restartDaemon()
    const before = await podd.untilReady('steady')
    podd.drop('late', shellPod('late', podd.shared, 'stay'))
    const late = await podd.untilReady('late')
    // Whoever kills podd means podd, not what it runs.
    for (let kills = 0; kills < 3; kills += 1) await podd.restartDaemon('SIGKILL')
    expect(containerOf(await podd.untilReady('late'), 'main')).toEqual(containerOf(late, 'main'))
    expect(await podd.cliOk('events')).not.toContain('SourceHeld')
    // Those of the tests before: a minute of waiting would follow.
    const reports = join(podd.rootDir, 'crash')
    rmSync(reports, { recursive: true, force: true })
    for (const crashes of [1, 2, 3]) {
      const { startedAt } = await podd.status()
      await podd.until('another second', () => Date.now() - Date.parse(startedAt) > 1500)
      await evaluate(podd, 'void Promise.reject(new Error("planted")); 1')
      await podd.until('the new daemon', async () => (await podd.status()).startedAt !== startedAt)
      expect(readdirSync(reports)).toHaveLength(crashes)
    }
    await podd.until('the end of the new pod', async () => (await podd.findPod('late')) === undefined)
    expect(containerOf(await podd.untilReady('steady'), 'main')).toEqual(containerOf(before, 'main'))
    expect(await podd.cliOk('status')).toMatch(/the last set that worked runs instead \(1 pods\)/u)
    expect(await podd.cliOk('events')).toContain('SourceHeld')
    // A restart without a crash does not try it again; a change does.
    await podd.restartDaemon()
    expect((await podd.untilReady('steady')).metadata.uid).toBe(before.metadata.uid)
    expect(await podd.findPod('late')).toBeUndefined()
    podd.drop('late', shellPod('late', podd.shared, 'say mended; stay'))
    await podd.untilReady('late')
    expect(JSON.parse(record())).toMatchObject({ held: {}, crashes: 0 })
    // Each file that a later podd reads has a version, and is held to the rule of both directions.
    const known = new Set(versionedFiles.map(({ path }) => kindOf(path)))
    const found = readdirSync(podd.rootDir, { recursive: true, encoding: 'utf8' }).filter(
      (path) => path.endsWith('.json') && !/^(?:containerd\/io\.|pods\/|crash\/)/u.test(path),
    )
    expect(found.filter((path) => !known.has(kindOf(path)))).toEqual([])
    expect(found.length).toBeGreaterThan(5)
  })

  it('leaves a daemon that support can look into, alive or dead, without its secrets', async () => {
    const podd = rig()
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'steady' },
      spec: {
        containers: [
          {
            name: 'main',
            image: 'localhost/podd-test/shell:1',
            command: ['/bin/sh', '-c', 'echo hunter2-env; exec sleep 1000'],
            env: [{ name: 'WORD', value: 'hunter2-env' }],
          },
        ],
      },
    }
    const data = { word: Buffer.from('hunter2-secret').toString('base64') }
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'word' }, data }
    podd.drop('steady', pod, secret)
    await podd.until('the new copy', () =>
      readFileSync(join(podd.rootDir, 'sources/file.json'), 'utf8').includes(data.word),
    )
    const auth = Buffer.from('robot:hunter2-registry').toString('base64')
    writeFileSync(join(podd.rootDir, 'config.json'), JSON.stringify({ auths: { 'registry.test': { auth } } }))
    const pack = async (name: string): Promise<string> => {
      const path = join(podd.directory, `${name}.tar.gz`)
      const { code, stderr } = await podd.cli('support-bundle', path, ...podd.flags())
      expect(stderr).toBe('')
      expect(code).toBe(0)
      return execFileSync('tar', ['-xzO', '-f', path], { encoding: 'latin1', maxBuffer: 2 ** 28 })
    }
    const words = [data.word, 'hunter2', auth]
    for (const state of ['alive', 'dead']) {
      if (state === 'dead') await podd.stopDaemon('SIGKILL')
      const bundle = await pack(state)
      for (const word of words) expect(bundle.includes(word), `${word} is in the bundle`).toBe(false)
      for (const part of ['"steady"', 'SourceHeld', '"planted"', 'cgroup-controllers', '<redacted>'])
        expect(bundle, `${part} is in the bundle`).toContain(part)
    }
    const { code, stdout } = await podd.cli('status', ...podd.flags().slice(0, 6))
    expect(code).toBe(1)
    expect(stdout).toMatch(/^Daemon: +not running/mu)
    expect(stdout).toMatch(/^Pods: +\d on record, \d with processes$/mu)
    expect(stdout).toMatch(/^Runtime: +containerd runs \(pid \d+\)$/mu)
    await podd.startDaemon()
  })
})
