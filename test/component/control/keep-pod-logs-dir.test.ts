import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { completeConfig } from '../../../src/config/options.ts'
import { keepPodLogsDir, savePodLogsDir } from '../../../src/control/node/logs.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-logs-dir-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const path = (name: string): string => join(directory, name)
const keep = (logs: string) =>
  keepPodLogsDir({ ...completeConfig({}), rootDir: path('root'), podLogsDir: path(logs) })
const save = (logs: string): void => savePodLogsDir(path('root'), path(logs), () => expect.unreachable())

/** A pod with a directory of its own, and one that is gone, whose logs were kept. */
function makePods(): void {
  mkdirSync(path('root/pods/uid-web'), { recursive: true })
  for (const name of ['default_web_uid-web', 'default_gone_uid-gone'])
    mkdirSync(path(`old/${name}`), { recursive: true })
}

describe('another directory of logs', () => {
  it('is taken at once where nothing is known of another one', () => {
    makePods()
    expect(keep('new')).toMatchObject({ config: { podLogsDir: path('new') }, warning: undefined })
  })

  it('is taken when no pod is left in the old one, and not before', () => {
    makePods()
    save('old')
    expect(keep('new').config.podLogsDir).toBe(path('old'))
    expect(keep('new').warning).toContain(`podLogsDir ${path('new')}, not ${path('old')}`)
    expect(keep('old').warning).toBeUndefined()
    rmSync(path('root/pods/uid-web'), { recursive: true })
    expect(keep('new')).toMatchObject({ config: { podLogsDir: path('new') }, warning: undefined })
    save('new')
    mkdirSync(path('root/pods/uid-web'))
    expect(keep('new').warning).toBeUndefined()
  })

  it('is not taken while a pod that is over, and has its record alone, has logs in the old one', () => {
    makePods()
    save('old')
    rmSync(path('root/pods'), { recursive: true })
    mkdirSync(path('root/records'))
    writeFileSync(path('root/records/uid-web.json'), '{}')
    expect(keep('new').config.podLogsDir).toBe(path('old'))
    rmSync(path('root/records/uid-web.json'))
    expect(keep('new').config.podLogsDir).toBe(path('new'))
  })

  it('is taken where the old one is gone', () => {
    makePods()
    save('old')
    rmSync(path('old'), { recursive: true })
    expect(keep('new').config.podLogsDir).toBe(path('new'))
  })

  it('is not taken over a record that cannot be read', () => {
    mkdirSync(path('root/pod-logs.json'), { recursive: true })
    expect(() => keep('new')).toThrow('EISDIR')
    rmSync(path('root/pod-logs.json'), { recursive: true })
    writeFileSync(path('root/pod-logs.json'), '{"version":1')
    expect(keep('new').config.podLogsDir).toBe(path('new'))
  })
})
