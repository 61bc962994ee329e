import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { WorkloadObject } from '../../../src/api/cluster-objects.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const podd = (line: string): Promise<CliOutcome> =>
  callCli(line.split(' '), { env: { PODD_SOCKET: rig.socketPath } })

function deployment(status: WorkloadObject['status']): WorkloadObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default', uid: 'u', generation: 1 },
    spec: { replicas: 2 },
    status,
  }
}

describe('podd rollout status', () => {
  it('ends when all pods are new and available', async () => {
    rig.deployments.put(deployment({ replicas: 2, updatedReplicas: 1, availableReplicas: 2 }))
    const waiting = podd('rollout status deploy/web')
    await expect.poll(() => rig.deployments.subscriptions).toBe(1)
    rig.deployments.put(deployment({ replicas: 2, updatedReplicas: 2, availableReplicas: 2 }))
    expect(await waiting).toMatchObject({
      exitCode: 0,
      stdout: 'deployment "web" successfully rolled out\n',
      stderr: expect.stringContaining('Waiting for deployment "web": 1 of 2 pods are new'),
    })
  })

  it('fails when the time is over', async () => {
    rig.deployments.put(deployment({ replicas: 2, updatedReplicas: 2, availableReplicas: 1 }))
    expect(await podd('rollout status deploy/web --timeout 1ms')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('timed out waiting for deployment web: 1 of 2 new pods are available'),
    })
  })
})

describe('what podd rolls out and scales', () => {
  it.each([
    ['rollout undo deploy/web', 'podd rollback FILE'],
    ['rollout history deploy/web', 'podd history FILE'],
    ['rollout status job/once', 'takes Deployment, StatefulSet, DaemonSet only, not job'],
    ['rollout deploy/web', 'rollout what?'],
    ['scale deploy/web', 'scale to how many?'],
    ['scale ds/web --replicas 2', 'takes Deployment, StatefulSet only, not daemonset'],
  ])('is told by `podd %s`', async (line, message) => {
    expect(await podd(line)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) })
  })
})
