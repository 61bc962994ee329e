import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { formatFieldPath, Issues } from '../../../src/pod/schema/issues.ts'
import { conforms, fillDefaults } from '../../../src/pod/schema/types.ts'
import { securityContextSchema } from '../../../src/pod/schema/container-schema.ts'
import { podSecurityContextSchema } from '../../../src/pod/schema/pod-schema.ts'
import {
  validatePodSecurityContext,
  validateSecurityContext,
} from '../../../src/pod/validation/validate-security-context.ts'

function problemsOf(issues: Issues): readonly string[] {
  return issues.problems.map(({ path, message }) => `${formatFieldPath(path)}: ${message}`)
}

function ofContainer(value: Json, hostUsers?: boolean): readonly string[] {
  const issues = new Issues()
  const filled = fillDefaults(securityContextSchema, value)
  if (!conforms(securityContextSchema, filled)) throw new Error('no security context')
  validateSecurityContext(filled, hostUsers === undefined ? {} : { hostUsers }, issues.of('sc'))
  return problemsOf(issues)
}

function ofPod(value: Json, hostUsers?: boolean): readonly string[] {
  const issues = new Issues()
  const filled = fillDefaults(podSecurityContextSchema, value)
  if (!conforms(podSecurityContextSchema, filled)) throw new Error('no security context')
  validatePodSecurityContext(filled, hostUsers === undefined ? {} : { hostUsers }, issues.of('sc'))
  return problemsOf(issues)
}

describe('a container’s security context', () => {
  it('warns of capabilities that the kernel doesn’t have', () => {
    expect(ofContainer({ capabilities: { add: ['NET_ADMNI'], drop: ['ALL', 'CHOWN', 'NET_RAW '] } })).toEqual(
      [
        'sc.capabilities.add[0]: unknown capability "NET_ADMNI": the runtime ignores it',
        'sc.capabilities.drop[2]: unknown capability "NET_RAW ": the runtime ignores it',
      ],
    )
  })

  it.each<[Json, string]>([
    [{ runAsUser: -1 }, 'sc.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive'],
    [{ runAsGroup: 2 ** 31 }, 'sc.runAsGroup: Invalid value: 2147483648'],
    [
      { privileged: true, allowPrivilegeEscalation: false },
      'cannot set `allowPrivilegeEscalation` to false and `privileged`',
    ],
    [
      { seccompProfile: { type: 'Localhost' } },
      'sc.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost',
    ],
    [
      { seccompProfile: { type: 'RuntimeDefault', localhostProfile: 'a' } },
      'can only be set when seccomp type is Localhost',
    ],
    [{ seccompProfile: { type: 'Localhost', localhostProfile: '/a' } }, 'must be a relative path'],
    [{ seccompProfile: { type: 'Localhost', localhostProfile: 'a/../b' } }, "must not contain '..'"],
    [{ appArmorProfile: { type: 'Localhost' } }, 'must be set when AppArmor type is Localhost'],
    [
      { procMount: 'Unmasked' },
      'sc.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`',
    ],
  ])('%j is refused', (value, expected) => {
    expect(ofContainer(value)).toEqual([expect.stringContaining(expected)])
  })

  it.each([
    [true, 1],
    [false, 0],
  ])('an unmasked /proc with hostUsers %j has %d problems', (hostUsers, problems) => {
    expect(ofContainer({ procMount: 'Unmasked' }, hostUsers)).toHaveLength(problems)
  })

  it.each<Json>([
    {},
    { privileged: true, runAsUser: 0 },
    { seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' }, capabilities: { drop: ['ALL'] } },
  ])('%j is taken', (value) => {
    expect(ofContainer(value)).toEqual([])
  })
})

describe('a pod’s security context', () => {
  it.each<[Json, string]>([
    [{ fsGroup: -1 }, 'sc.fsGroup: Invalid value: -1'],
    [{ supplementalGroups: [1, -1] }, 'sc.supplementalGroups[1]: Invalid value: -1'],
    [{ sysctls: [{ name: 'Kernel', value: '1' }] }, 'match regex ^([a-z0-9]([-_a-z0-9]*'],
    [{ sysctls: [{ name: '', value: '1' }] }, 'sc.sysctls[0].name: Required value'],
    [
      { sysctls: [{ name: 'kernel/shm_rmid_forced', value: '2' }] },
      'sc.sysctls[0].value: not supported: the kernel refuses "2": kernel/shm_rmid_forced takes a whole number between 0 and 1',
    ],
    [
      { sysctls: [{ name: 'net.ipv4.ip_local_port_range', value: '9000 8000' }] },
      'takes 2 whole numbers between 1 and 65535, the second no less than the first',
    ],
    [
      { sysctls: [{ name: 'net.ipv4.ip_local_reserved_ports', value: '8080;9000' }] },
      'takes ports and ranges of them, such as 8080,9000-9100',
    ],
    [
      {
        sysctls: [
          { name: 'net.a', value: '1' },
          { name: 'net.a', value: '2' },
        ],
      },
      'Duplicate value: "net.a"',
    ],
  ])('%j is refused', (value, expected) => {
    expect(ofPod(value)).toEqual([expect.stringContaining(expected)])
  })

  it('has no ids beyond those that its user namespace maps, where it has one of its own', () => {
    const ids = { runAsUser: 65_535, runAsGroup: 65_536, fsGroup: 65_536, supplementalGroups: [0, 65_536] }
    expect(ofPod(ids)).toEqual([])
    expect(ofPod(ids, true)).toEqual([])
    const message =
      'not supported: a pod with hostUsers: false has the ids 0 to 65535, and 65536 is none of them'
    expect(ofPod(ids, false)).toEqual(
      ['runAsGroup', 'fsGroup', 'supplementalGroups[1]'].map((field) => `sc.${field}: ${message}`),
    )
    expect(ofContainer({ runAsUser: 65_536, runAsGroup: 5 }, false)).toEqual([`sc.runAsUser: ${message}`])
    expect(ofContainer({ runAsUser: 65_536 })).toEqual([])
  })

  it('is taken with what is right', () => {
    expect(
      ofPod({ fsGroup: 1000, sysctls: [{ name: 'net.ipv4.ip_local_port_range', value: '1 2' }] }),
    ).toEqual([])
  })
})
