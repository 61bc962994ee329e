import { expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { decodePod } from '../../../src/pod/decode/decode-pod.ts'
import { formatFieldPath } from '../../../src/pod/schema/issues.ts'

const problemsOf = (spec: JsonObject, options: JsonObject): readonly string[] => {
  const container = { name: 'main', image: 'app', securityContext: { windowsOptions: options } }
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [container], ...spec },
  }
  return decodePod(pod, 'Strict')
    .problems.filter(({ severity }) => severity === 'error')
    .map(({ path, message }) => `${formatFieldPath(path)}: ${message}`)
}
const at = 'spec.containers[0].securityContext.windowsOptions'

it.each<[string, JsonObject, JsonObject, readonly unknown[]]>([
  ['a user of 361 characters', {}, { runAsUserName: `${'d'.repeat(256)}\\${'u'.repeat(104)}` }, []],
  ['a user', {}, { runAsUserName: String.raw`NT AUTHORITY\SYSTEM` }, []],
  ['a host process with the host’s network', { hostNetwork: true }, { hostProcess: true }, []],
  ['nothing', { os: { name: 'windows' } }, {}, []],
  [
    'anything of a Linux pod',
    { os: { name: 'linux' } },
    { runAsUserName: 'me' },
    [`${at}: Forbidden: windows options cannot be set for a linux pod`],
  ],
  [
    'a host process without the host’s network',
    {},
    { hostProcess: true },
    [expect.stringMatching(/^spec.hostNetwork: Invalid value: false: hostNetwork must be true/u)],
  ],
  [
    'another word than the pod’s',
    { hostNetwork: true, securityContext: { windowsOptions: { hostProcess: true } } },
    { hostProcess: false },
    [expect.stringContaining('pod hostProcess value must be identical if both are specified, was true')],
  ],
  [
    'a container that is a host process beside one that is none',
    { hostNetwork: true, initContainers: [{ name: 'first', image: 'app' }] },
    { hostProcess: true },
    [expect.stringContaining('then all containers must be HostProcess containers')],
  ],
  [
    'a user of two domains',
    {},
    { runAsUserName: String.raw`a\b\c` },
    [expect.stringContaining('one backslash')],
  ],
  ['no user', {}, { runAsUserName: '' }, [expect.stringContaining('cannot be an empty string')]],
  ['no user of a domain', {}, { runAsUserName: 'a\\' }, [expect.stringContaining('User cannot be empty')]],
  ['a user with a bell', {}, { runAsUserName: 'a\u0007' }, [expect.stringContaining('control characters')]],
  [
    'an empty credential',
    {},
    { gmsaCredentialSpec: '' },
    [expect.stringContaining('cannot be an empty string')],
  ],
  [
    'a wrong name',
    {},
    { gmsaCredentialSpecName: 'A b' },
    [expect.stringContaining('gmsaCredentialSpecName')],
  ],
])('options for Windows: %s', (_what, spec, options, problems) => {
  expect(problemsOf(spec, options)).toEqual(problems)
})
