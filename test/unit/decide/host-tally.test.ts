import { expect, it } from 'vitest'
import {
  admitPod,
  HostTally,
  findPortClash,
  findRoomLack,
  hostShares,
  smallerShares,
  totalShares,
} from '../../../src/decide/admission/admit-pod.ts'
import type { Admission, Neighbour, HostLimits } from '../../../src/decide/admission/admit-pod.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'
import { makePod } from '../../support/pod-builders.ts'
import { pick, seededRandom } from '../../support/walk-pods.ts'

/** What `admitPod` says, by a look at each neighbour. */
function admitByEach(pod: Pod, neighbours: readonly Neighbour[], limits: HostLimits): Admission {
  const wanted = hostShares(pod)
  for (const { key, pod: other } of neighbours) {
    const port = findPortClash(wanted, hostShares(other))
    if (port !== undefined)
      return {
        kind: 'blocked',
        reason: 'Blocked',
        message: `host port ${port.port}/${port.protocol} is held by pod ${key}`,
      }
  }
  const living = neighbours.filter(({ hasEnded }) => hasEnded !== true)
  const lasting = living.flatMap(({ pod: other, next, isEnding }) => {
    if (isEnding === true) return []
    const shares = hostShares(other)
    return [next === undefined ? shares : smallerShares(shares, hostShares(next))]
  })
  const present = living.flatMap(({ pod: other, isPromised }) =>
    isPromised === true ? [] : hostShares(other),
  )
  const lack =
    findRoomLack(wanted, totalShares(lasting), limits) ?? findRoomLack(wanted, totalShares(present), limits)
  return lack === undefined
    ? { kind: 'admitted' }
    : { kind: 'blocked', reason: 'Blocked', message: lack.message }
}

it('admits each of many pods as a look at all of its neighbours does', () => {
  const random = seededRandom(18)
  const is = (chance: number): boolean => random() < chance
  const draw = (name: string): Pod =>
    makePod({
      name,
      containers: [
        {
          name: 'a',
          resources: {
            requests: { cpu: pick(random, ['1m', '250m', '1']), memory: pick(random, ['1Mi', '1Gi']) },
          },
          ports: is(0.3)
            ? [
                {
                  containerPort: 80,
                  hostPort: pick(random, [1, 2, 3]),
                  hostIP: pick(random, ['', '127.0.0.1', '10.0.0.1', '0.0.0.0']),
                  protocol: pick(random, ['TCP', 'UDP']),
                },
              ]
            : [],
        },
      ],
    })
  const seen = new Set<string>()
  for (let round = 0; round < 200; round += 1) {
    const limits = { maxPods: 8, allocatable: { cpu: '3', memory: '4Gi' } }
    const neighbours: Neighbour[] = Array.from({ length: Math.floor(random() * 6) }, (_, at) => ({
      key: `default/old${at}`,
      pod: draw(`old${at}`),
      hasEnded: is(0.1),
      isEnding: is(0.2),
      isPromised: is(0.1),
      next: is(0.2) ? draw(`old${at}`) : undefined,
    }))
    const tally = new HostTally(neighbours)
    for (let at = 0; at < 8; at += 1) {
      const pod = draw(`new${at}`)
      const admission = admitPod(pod, neighbours, limits, tally)
      expect(admission).toMatchObject(admitByEach(pod, neighbours, limits))
      expect(admission).toEqual(admitPod(pod, neighbours, limits))
      seen.add(
        admission.kind === 'admitted'
          ? admission.kind
          : (/port|resource: \w+/u.exec(admission.message)?.[0] ?? ''),
      )
      if (admission.kind !== 'admitted') continue
      const neighbour = { key: `default/new${at}`, pod }
      neighbours.push(neighbour)
      tally.add(neighbour)
    }
  }
  expect([...seen].toSorted()).toEqual([
    'admitted',
    'port',
    'resource: cpu',
    'resource: memory',
    'resource: pods',
  ])
})
