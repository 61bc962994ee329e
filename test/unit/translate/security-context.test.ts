import { describe, expect, it } from 'vitest'
import type { SecurityContext } from '../../../src/pod/schema/container-schema.ts'
import {
  containerSecurityContext,
  effectiveSecurityContext,
  imageUserOf,
  runAsRootProblem,
  sandboxSecurityContext,
} from '../../../src/translate/security-context.ts'
import type { ImageUser } from '../../../src/translate/security-context.ts'
import { appOf, podWith, testPod } from './pods.ts'
import type { PodSecurityContext, PodSpec } from '../../../src/pod/schema/pod-schema.ts'

const facts = { seccompRoot: '/var/lib/podd/seccomp', seccompDefault: false, appArmor: true }
const podSecurity: PodSecurityContext = { supplementalGroups: [], sysctls: [] }

function of(
  own: SecurityContext | undefined,
  options: {
    readonly pod?: Partial<PodSpec>
    readonly imageUser?: ImageUser
    readonly facts?: Partial<typeof facts>
    readonly targetContainerId?: string
  } = {},
) {
  const pod = podWith(testPod(), options.pod ?? {})
  const container = own === undefined ? appOf(pod) : { ...appOf(pod), securityContext: own }
  return containerSecurityContext(pod.spec, container, {
    imageUser: options.imageUser ?? {},
    security: { ...facts, ...options.facts },
    targetContainerId: options.targetContainerId,
  })
}

describe('containerSecurityContext', () => {
  it('of a container that asks for nothing is the kubelet’s', () => {
    const context = of(undefined)
    expect(context).toMatchObject({
      privileged: false,
      readonlyRootfs: false,
      noNewPrivs: false,
      namespaceOptions: { network: 'POD', ipc: 'POD', pid: 'CONTAINER' },
      supplementalGroups: [],
      supplementalGroupsPolicy: 'Merge',
      seccomp: { profileType: 'Unconfined' },
    })
    expect(context.maskedPaths).toContain('/proc/kcore')
    expect(context.readonlyPaths).toContain('/proc/sys')
    for (const absent of ['runAsUser', 'runAsGroup', 'capabilities', 'selinuxOptions', 'apparmor']) {
      expect(context).not.toHaveProperty(absent)
    }
  })

  it.each<[SecurityContext, object]>([
    [{ privileged: true }, { privileged: true }],
    [{ readOnlyRootFilesystem: true }, { readonlyRootfs: true }],
    [{ allowPrivilegeEscalation: false }, { noNewPrivs: true }],
    [{ allowPrivilegeEscalation: true }, { noNewPrivs: false }],
    [{ procMount: 'Unmasked' }, { maskedPaths: [], readonlyPaths: [] }],
    [
      { capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] } },
      { capabilities: { addCapabilities: ['NET_ADMIN'], dropCapabilities: ['ALL'] } },
    ],
    [
      { runAsUser: 1000, runAsGroup: 3000 },
      { runAsUser: { value: 1000 }, runAsGroup: { value: 3000 } },
    ],
    [{ runAsUser: 0 }, { runAsUser: { value: 0 } }],
    [{ seLinuxOptions: { level: 's0:c1' } }, { selinuxOptions: { level: 's0:c1' } }],
    [{ seccompProfile: { type: 'RuntimeDefault' } }, { seccomp: { profileType: 'RuntimeDefault' } }],
    [
      { seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' } },
      { seccomp: { profileType: 'Localhost', localhostRef: '/var/lib/podd/seccomp/a/b.json' } },
    ],
    [
      { appArmorProfile: { type: 'RuntimeDefault' } },
      { apparmor: { profileType: 'RuntimeDefault' }, apparmorProfile: 'runtime/default' },
    ],
    [
      { appArmorProfile: { type: 'Unconfined' } },
      { apparmor: { profileType: 'Unconfined' }, apparmorProfile: 'unconfined' },
    ],
    [
      { appArmorProfile: { type: 'Localhost', localhostProfile: 'mine' } },
      { apparmor: { profileType: 'Localhost', localhostRef: 'mine' }, apparmorProfile: 'localhost/mine' },
    ],
  ])('of %j has %j', (own, expected) => {
    expect(of(own)).toMatchObject(expected)
  })

  it('says nothing of AppArmor on a host without it', () => {
    const own: SecurityContext = { appArmorProfile: { type: 'RuntimeDefault' } }
    expect(of(own, { facts: { appArmor: false } })).not.toHaveProperty('apparmor')
  })

  it('confines by default where podd is told to, unless the container says otherwise', () => {
    const confined = { facts: { seccompDefault: true } }
    expect(of(undefined, confined).seccomp).toEqual({ profileType: 'RuntimeDefault' })
    expect(of({ seccompProfile: { type: 'Unconfined' } }, confined).seccomp).toEqual({
      profileType: 'Unconfined',
    })
  })

  it('takes the image’s user where nobody names one, beside the pod’s group', () => {
    const pod = { securityContext: { ...podSecurity, runAsGroup: 5 } }
    expect(of(undefined, { pod, imageUser: { uid: 7 } })).toMatchObject({
      runAsUser: { value: 7 },
      runAsGroup: { value: 5 },
    })
    expect(of(undefined, { pod, imageUser: { username: 'app' } })).toMatchObject({ runAsUsername: 'app' })
    expect(of(undefined, { pod, imageUser: {} })).not.toHaveProperty('runAsUsername')
    expect(of(undefined, { pod, imageUser: { username: '' } })).not.toHaveProperty('runAsUsername')
    const named = of({ runAsUser: 1 }, { imageUser: { username: 'app' } })
    expect(named).toMatchObject({ runAsUser: { value: 1 } })
    expect(named).not.toHaveProperty('runAsUsername')
  })

  it('has the pod’s groups, fsGroup first', () => {
    const securityContext: PodSecurityContext = {
      ...podSecurity,
      fsGroup: 2000,
      supplementalGroups: [10, 11],
      supplementalGroupsPolicy: 'Strict',
    }
    expect(of(undefined, { pod: { securityContext } })).toMatchObject({
      supplementalGroups: [2000, 10, 11],
      supplementalGroupsPolicy: 'Strict',
    })
  })

  it.each<[Partial<PodSpec>, object]>([
    [{ hostNetwork: true }, { network: 'NODE', ipc: 'POD', pid: 'CONTAINER' }],
    [{ hostPID: true }, { network: 'POD', ipc: 'POD', pid: 'NODE' }],
    [{ hostIPC: true }, { network: 'POD', ipc: 'NODE', pid: 'CONTAINER' }],
    [{ shareProcessNamespace: true }, { network: 'POD', ipc: 'POD', pid: 'POD' }],
    [
      { hostPID: true, shareProcessNamespace: true },
      { network: 'POD', ipc: 'POD', pid: 'NODE' },
    ],
  ])('of a pod with %j has the namespaces %j', (pod, expected) => {
    expect(of(undefined, { pod }).namespaceOptions).toEqual(expected)
  })

  it('lets an ephemeral container see its target, where processes aren’t shared anyway', () => {
    expect(of(undefined, { targetContainerId: 'c1' }).namespaceOptions).toMatchObject({
      pid: 'TARGET',
      targetId: 'c1',
    })
    const shared = { pod: { shareProcessNamespace: true }, targetContainerId: 'c1' }
    expect(of(undefined, shared).namespaceOptions).toMatchObject({ pid: 'POD' })
  })
})

describe('effectiveSecurityContext', () => {
  it('is the pod’s where the container says nothing, and the container’s where it does', () => {
    const pod: PodSecurityContext = {
      ...podSecurity,
      runAsUser: 1,
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    }
    expect(effectiveSecurityContext(pod, { runAsUser: 2 })).toEqual({
      runAsUser: 2,
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    const whole: PodSecurityContext = {
      ...podSecurity,
      seLinuxOptions: { level: 's0' },
      runAsUser: 1,
      runAsGroup: 2,
      runAsNonRoot: false,
      seccompProfile: { type: 'RuntimeDefault' },
      appArmorProfile: { type: 'Unconfined' },
    }
    const { seLinuxOptions, runAsUser, runAsGroup, runAsNonRoot, seccompProfile, appArmorProfile } = whole
    expect(effectiveSecurityContext(whole, undefined)).toStrictEqual({
      seLinuxOptions,
      runAsUser,
      runAsGroup,
      runAsNonRoot,
      seccompProfile,
      appArmorProfile,
    })
    expect(effectiveSecurityContext(undefined, undefined)).toStrictEqual({})
  })
})

describe('sandboxSecurityContext', () => {
  it('confines the sandbox whatever the containers are, and is privileged if one of them is', () => {
    const pod = testPod()
    const privileged = { ...appOf(pod), securityContext: { privileged: true } }
    const unconfined: PodSecurityContext = {
      ...podSecurity,
      seccompProfile: { type: 'Unconfined' },
      runAsUser: 5,
      runAsGroup: 6,
      fsGroup: 7,
      seLinuxOptions: { role: 'r' },
    }
    const { spec } = podWith(pod, { initContainers: [privileged], securityContext: unconfined })
    expect(sandboxSecurityContext(spec)).toMatchObject({
      privileged: true,
      seccomp: { profileType: 'RuntimeDefault' },
      runAsUser: { value: 5 },
      runAsGroup: { value: 6 },
      supplementalGroups: [7],
      selinuxOptions: { role: 'r' },
    })
    expect(sandboxSecurityContext(pod.spec)).toMatchObject({ privileged: false })
    expect(sandboxSecurityContext(pod.spec, { seccompPath: '/run/podd/seccomp.json' }).seccomp).toEqual({
      profileType: 'Localhost',
      localhostRef: '/run/podd/seccomp.json',
    })
  })

  it('leaves a group without a user to the containers, for the runtime refuses it of a sandbox', () => {
    const { spec } = podWith(testPod(), { securityContext: { ...podSecurity, runAsGroup: 6 } })
    expect(sandboxSecurityContext(spec)).not.toHaveProperty('runAsGroup')
    expect(sandboxSecurityContext(spec)).not.toHaveProperty('runAsUser')
  })
})

describe('imageUserOf', () => {
  it.each([
    [{ uid: { value: 33 }, username: '' }, { uid: 33 }],
    [{ uid: null, username: 'www' }, { username: 'www' }],
    [{ uid: null, username: '' }, { uid: 0 }],
  ])('%j is %j', (image, expected) => {
    expect(imageUserOf(image)).toEqual(expected)
  })
})

describe('runAsRootProblem', () => {
  it.each<[SecurityContext, ImageUser, string | undefined]>([
    [{}, { uid: 0 }, undefined],
    [{ runAsNonRoot: false }, { uid: 0 }, undefined],
    [{ runAsNonRoot: true }, { uid: 1 }, undefined],
    [{ runAsNonRoot: true, runAsUser: 1 }, { uid: 0 }, undefined],
    [{ runAsNonRoot: true, runAsUser: 0 }, { uid: 1 }, 'runAsUser breaks non-root policy'],
    [{ runAsNonRoot: true }, { uid: 0 }, 'image will run as root'],
    [{ runAsNonRoot: true }, { username: 'www' }, 'non-numeric user (www)'],
  ])('of %j with an image of %j: %s', (effective, imageUser, expected) => {
    const problem = runAsRootProblem(effective, imageUser)
    expect(problem === undefined).toBe(expected === undefined)
    expect(problem ?? '').toContain(expected ?? '')
  })
})
