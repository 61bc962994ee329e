import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { UnitObject } from '../../../src/api/sources.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
  rig.units = [unit('/etc/pods/web.yaml'), unit('/etc/pods/sub/db.yaml'), unit('/etc/other/db.yaml'), fleet]
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const podd = (...words: readonly string[]): Promise<CliOutcome> =>
  callCli(words, { env: { PODD_SOCKET: rig.socketPath } })

const time = new Date(Date.now() - 7_201_000).toISOString()

function unit(name: string, status: Partial<UnitObject['status']> = {}): UnitObject {
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Unit',
    metadata: { name },
    spec: { source: name.startsWith('/') ? 'file' : name },
    status: {
      state: 'Healthy',
      active: 1,
      offered: 1,
      lastHealthy: 1,
      progressing: [],
      revisions: [{ number: 1, hash: '0123456789abcdef', time, verdict: 'Healthy', pods: 2 }],
      ...status,
    },
  }
}

const fleet = unit('http:fleet', {
  state: 'RolledBack',
  offered: 2,
  message: 'revision 2 failed, and revision 1 counts again: pod default/web has crashed 3 times',
  revisions: [
    { number: 1, hash: '0123456789abcdef', time, verdict: 'Healthy', pods: 2 },
    {
      number: 2,
      hash: 'fedcba9876543210',
      time,
      verdict: 'Failed',
      pods: 3,
      failure: {
        reason: 'CrashLoopBackOff',
        message: 'pod default/web has crashed 3 times',
        time,
        containers: [
          {
            pod: 'default/web',
            container: 'main',
            exitCode: 127,
            reason: 'Error',
            lines: ['sh: httpdd: not found'],
          },
        ],
      },
    },
  ],
})

const rows = (text: string): readonly string[] =>
  text.split('\n').map((line) => line.replaceAll(/ {2,}/gu, ' | '))

describe('podd history', () => {
  it('lists the units, with what counts of each and why', async () => {
    const { stdout, exitCode } = await podd('history')
    expect(exitCode).toBe(0)
    expect(rows(stdout)).toEqual([
      'UNIT | STATE | ACTIVE | OFFERED | CHANGED | WHY',
      '/etc/pods/web.yaml | Healthy | 1 | 1 | 120m | <none>',
      '/etc/pods/sub/db.yaml | Healthy | 1 | 1 | 120m | <none>',
      '/etc/other/db.yaml | Healthy | 1 | 1 | 120m | <none>',
      'http:fleet | RolledBack | 1 | 2 | 120m | revision 2 failed, and revision 1 counts again: pod default/web has crashed 3 times',
      '',
    ])
  })

  it('lists the revisions of one, and how the containers of a failed one ended', async () => {
    const { stdout, stderr } = await podd('history', 'fleet')
    expect(rows(stdout)).toEqual([
      'REVISION | VERDICT | PODS | AGE | NOW | WHY',
      '1 | Healthy | 2 | 120m | active | <none>',
      '2 | Failed | 3 | 120m | offered | CrashLoopBackOff',
      '',
    ])
    expect(stderr).toBe(
      'revision 2 failed: pod default/web has crashed 3 times\n' +
        '  default/web, container main: exit code 127 (Error)\n' +
        '    | sh: httpdd: not found\n',
    )
    expect(JSON.parse((await podd('history', 'fleet', '-o', 'json')).stdout)).toEqual(fleet)
  })

  it('says which revisions of one are not trusted any more, and what of a unit is so beside its revisions', async () => {
    const revisions = fleet.status.revisions.map((revision) => ({ ...revision, distrusted: true as const }))
    const invalid = unit('/etc/pods/bad.yaml', { state: 'Invalid', message: 'not all of it is valid' })
    rig.units = [{ ...fleet, status: { ...fleet.status, revisions } }, invalid]
    expect(rows((await podd('history', 'fleet')).stdout).slice(1)).toEqual([
      '1 | Healthy | 2 | 120m | active | NotTrusted',
      '2 | Failed | 3 | 120m | offered | CrashLoopBackOff, NotTrusted',
      '',
    ])
    expect(rows((await podd('history')).stdout)[2]).toMatch(
      /bad\.yaml \| Invalid \| .* not all of it is valid$/u,
    )
  })

  it.each([
    ['web.yaml', 0],
    ['web', 0],
    ['/etc/pods/web.yaml', 0],
    ['sub/db', 0],
    ['http:fleet', 0],
    ['db', 1],
    ['none', 1],
  ])('takes %s for a name where it can mean but one unit', async (word, exitCode) => {
    expect((await podd('history', word)).exitCode).toBe(exitCode)
  })

  it('says which units a word may mean', async () => {
    expect((await podd('history', 'db')).stderr).toContain(
      '"db" may be /etc/pods/sub/db.yaml or /etc/other/db.yaml',
    )
    expect((await podd('history', 'a', 'b')).exitCode).toBe(2)
  })
})

describe('podd rollback', () => {
  it('goes back by one, or to the revision that is named', async () => {
    expect((await podd('rollback', 'web')).stdout).toBe(
      'revision 1 of /etc/pods/web.yaml counts until its source gives something new, or `podd resume web`\n',
    )
    await podd('rollback', 'fleet', '--to', '2')
    expect(rig.rollbacks).toEqual(['/etc/pods/web.yaml to the one before', 'http:fleet to 2'])
  })

  it.each([
    [['rollback'], 2, /roll back which unit/u],
    [['rollback', 'web', '--to', 'x'], 2, /--to must be the number of a revision/u],
    [['rollback', 'web', '--to', '9'], 1, /revision 9 is not kept; there are 1, 2/u],
    [['rollback', 'db'], 1, /"db" may be/u],
    [['rollback', 'none'], 1, /there is no unit "none"/u],
  ])('of %j fails and says why', async (words, exitCode, message) => {
    expect(await podd(...words)).toMatchObject({ exitCode, stderr: expect.stringMatching(message) })
  })
})

describe('podd resume', () => {
  it('tries again what a unit gives, only where it is named', async () => {
    expect((await podd('resume', 'web')).stdout).toBe('unit /etc/pods/web.yaml is followed again\n')
    expect((await podd('resume')).stdout).toMatch(/^nothing changed/u)
    expect(rig.rollbacks).toEqual(['/etc/pods/web.yaml resumed'])
  })
})
