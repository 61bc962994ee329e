import fc from 'fast-check'
import { makePod, probe, sidecar } from '../../../support/pod-builders.ts'
import type { ModelEvent, StartFailure } from './pod-model.ts'

const policy = fc.constantFrom('Always', 'OnFailure', 'Never')
const byExitCode = fc.constantFrom(
  [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
  [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }],
  [{ action: 'RestartAllContainers', exitCodes: { operator: 'NotIn', values: [0, 1] } }],
)

function container(name: string) {
  return fc
    .record(
      {
        restartPolicy: policy,
        livenessProbe: fc.constant(probe),
        startupProbe: fc.constant(probe),
        restartPolicyRules: byExitCode,
      },
      { requiredKeys: [] },
    )
    .map(({ restartPolicyRules, ...fields }) =>
      // Rules are heeded only beside a policy of the container's own.
      restartPolicyRules !== undefined && fields.restartPolicy !== undefined
        ? Object.assign(fields, { name, restartPolicyRules })
        : Object.assign(fields, { name }),
    )
}

function initContainer(name: string) {
  return fc.oneof(
    fc.constant({ name }),
    fc.constant({ name, restartPolicy: 'Never' }),
    fc.constant(sidecar(name)),
    byExitCode.map((restartPolicyRules) => sidecar(name, { restartPolicyRules })),
    byExitCode.map((restartPolicyRules) => ({ name, restartPolicy: 'Never', restartPolicyRules })),
    fc.constant(sidecar(name, { startupProbe: probe, livenessProbe: probe })),
  )
}

/** Pods of all shapes that decide over their life. */
export const somePod = fc
  .record({
    restartPolicy: policy,
    containers: fc.oneof(fc.tuple(container('a')), fc.tuple(container('a'), container('b'))),
    init: fc.oneof(
      fc.constant([]),
      fc.tuple(initContainer('i')),
      fc.tuple(initContainer('i'), initContainer('j')),
      fc.tuple(initContainer('i'), initContainer('j'), initContainer('k')),
    ),
    ephemeral: fc.constantFrom<string[]>([], ['debug']),
    spec: fc.record({ hostNetwork: fc.boolean() }),
  })
  .map((changes) => makePod(changes))

const pick = fc.nat(5)
const failures = fc.array(fc.constantFrom<StartFailure>('none', 'none', 'image', 'create', 'start'), {
  maxLength: 4,
})
const fails = fc.oneof({ arbitrary: fc.constant([]), weight: 6 }, failures)
const acts = fc.record({
  kind: fc.constant('podd-acts' as const),
  fails,
  stopsWith: fc.constantFrom(143, 143, 0, 1, 42),
  diesAfter: fc.oneof({ arbitrary: fc.constant(undefined), weight: 8 }, fc.nat(4)),
})
const exits = fc.record({
  kind: fc.constant('exit' as const),
  pick,
  exitCode: fc.constantFrom(0, 0, 1, 42, 137),
})
const probes = fc.record({
  kind: fc.constant('probe' as const),
  pick,
  probe: fc.constantFrom('liveness', 'startup', 'readiness'),
  verdict: fc.constantFrom('success', 'failure', 'unknown'),
})
const time = fc.record({
  kind: fc.constant('time-passes' as const),
  ms: fc.oneof(fc.nat(5000), fc.nat(60_000), fc.nat(700_000)),
})
const rare = fc.oneof(
  fc.record({ kind: fc.constant('lose-track' as const), pick }),
  fc.record({ kind: fc.constant('sandbox-dies' as const), pick: fc.nat(1) }),
  fc.record({ kind: fc.constant('address-lost' as const) }),
  fc.record({ kind: fc.constant('dead-forgotten' as const) }),
  fc.record({ kind: fc.constant('all-forgotten' as const) }),
  fc.record({ kind: fc.constant('restart-asked' as const) }),
  fc.record({ kind: fc.constant('clock-set-back' as const), ms: fc.nat(7_200_000) }),
  fc.record({ kind: fc.constant('image-changes' as const), pick, tag: fc.integer({ min: 1, max: 3 }) }),
)

/** What may happen to a pod; podd looks at it about every other time. */
export const someEvents: fc.Arbitrary<readonly ModelEvent[]> = fc.array(
  fc.oneof(
    { arbitrary: acts, weight: 9 },
    { arbitrary: exits, weight: 5 },
    { arbitrary: probes, weight: 3 },
    { arbitrary: time, weight: 3 },
    { arbitrary: rare, weight: 2 },
  ),
  { minLength: 1, maxLength: 40, size: 'max' },
)
