import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ParsedArguments, parseArguments } from '../../../src/cli/arguments/parse-arguments.ts'
import { debugVerb, debugContainer } from '../../../src/cli/verbs/debug.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import { podObject } from '../../support/pod-objects.ts'

let rig: ApiRig

beforeAll(async () => {
  rig = await ApiRig.start()
  rig.pods.put(podObject({ name: 'web' }))
})
afterAll(() => rig[Symbol.asyncDispose]())

const call = (...words: readonly string[]) => callCli(['--socket', rig.socketPath, 'debug', ...words])

describe('podd debug', () => {
  it.each([
    [[], 2, 'debug which pod?'],
    [['web'], 2, 'debug with which image?'],
    [['web', 'sh', '--image', 'a'], 2, 'A command stands after --.'],
    [
      ['web', '--image', 'a', '--profile', 'root'],
      2,
      'There are general, baseline, restricted, netadmin, sysadmin.',
    ],
    [['web', '--image', 'a', '--env', 'A'], 2, '--env "A" is not NAME=VALUE'],
    [['web', '--image', 'a', '--image-pull-policy', 'Never!'], 2, 'There are Always, IfNotPresent, Never.'],
    [['web', '--image', 'a', '-c', 'main'], 2, 'pod web has a container main already'],
    [['web', '--image', 'a', '--target', 'mian'], 1, 'pod web has no container mian'],
    [['wep', '--image', 'a'], 1, 'Did you mean web?'],
  ])('%j ends with %i: %s', async (words, code, told) => {
    const { exitCode, stderr } = await call(...words)
    expect([exitCode, stderr]).toEqual([code, expect.stringContaining(told)])
  })

  it('makes the container that kubectl debug makes', () => {
    const args = parseArguments(
      ['web', '-it', '--env', 'A=b=c', '--env', 'D=', '--image-pull-policy', 'Never'],
      debugVerb.flags,
    )
    expect(
      debugContainer({ name: 'd', image: 'i', command: ['sh', '-c', 'x'], target: 'main', args }),
    ).toEqual({
      name: 'd',
      image: 'i',
      command: ['sh', '-c', 'x'],
      env: [
        { name: 'A', value: 'b=c' },
        { name: 'D', value: '' },
      ],
      imagePullPolicy: 'Never',
      securityContext: { capabilities: { add: ['SYS_PTRACE'] } },
      stdin: true,
      tty: true,
      targetContainerName: 'main',
    })
    const plain = new ParsedArguments([], [{ flag: 'profile', text: 'baseline' }])
    expect(debugContainer({ name: 'd', image: 'i', command: [], target: undefined, args: plain })).toEqual({
      name: 'd',
      image: 'i',
    })
  })
})
