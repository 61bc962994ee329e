import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodAction, PodPlan } from './pod-action.ts'
import type { PodFacts } from './pod-facts.ts'

/**
 * The facts for a log, from which the same plan can be computed again. Only what the deciders read is in it: nothing of a
 * container's environment, command, hooks or mounts, no labels and annotations, and no text that a container or the
 * runtime wrote.
 */
export function factsToJson(facts: PodFacts): unknown {
  const { observed } = facts
  const withoutAnnotations = <Thing extends object>(thing: Thing) => ({ ...thing, annotations: {} })
  const reduced = {
    ...facts,
    pod: reducePod(facts.pod),
    observed: {
      ...observed,
      sandboxes: observed.sandboxes.map((sandbox) => withoutAnnotations(sandbox)),
      containers: observed.containers.map((container) => withoutAnnotations(container)),
    },
  }
  return JSON.parse(
    JSON.stringify(reduced, (key, value: unknown) => {
      if (value instanceof Set) return [...value]
      // Of ends, waits and refusals; a container may have this name, too.
      return key === 'message' && typeof value === 'string' ? '' : value
    }),
  )
}

/** A plan for a log; equal for equal plans. Texts that the deciders only pass on are left out. */
export function planToJson(plan: PodPlan) {
  return {
    actions: plan.actions.map((action) => actionToJson(action)),
    wakeAtMs: plan.wakeAtMs,
    waiting: Object.fromEntries([...plan.waiting].map(([name, { reason }]) => [name, reason])),
    blockedRestarts: [...(plan.blockedRestarts?.keys() ?? [])],
    restartsDue: plan.restartsDue ?? [],
    restartAll: [...(plan.restartAll ?? [])],
    isLost: plan.isLost === true,
    resize: plan.resize?.kind,
  }
}

function actionToJson(action: PodAction) {
  switch (action.kind) {
    case 'stop-container':
    case 'finish-post-start':
      return { ...action, container: { name: action.container.name, id: action.container.id } }
    case 'start-container':
    case 'fetch-image': {
      const { name, image, imagePullPolicy } = action.spec
      return { ...action, spec: { name, image, imagePullPolicy } }
    }
    case 'resize-containers': {
      const resizes = action.resizes.map(({ container: { name, id }, from, to }) => ({ name, id, from, to }))
      return { ...action, resizes }
    }
    case 'stop-pod':
    case 'create-sandbox':
    case 'remove-containers':
    case 'remove-sandboxes':
      return action
  }
}

function reducePod({ metadata, spec }: Pod) {
  const { name, namespace } = metadata
  const { restartPolicy, terminationGracePeriodSeconds, hostNetwork, resources } = spec
  return {
    metadata: { name, namespace },
    spec: {
      initContainers: spec.initContainers.map((container) => reduceContainer(container)),
      containers: spec.containers.map((container) => reduceContainer(container)),
      ephemeralContainers: spec.ephemeralContainers.map((container) => reduceContainer(container)),
      restartPolicy,
      terminationGracePeriodSeconds,
      hostNetwork,
      resources,
    },
  }
}

function reduceContainer(spec: ContainerSpec) {
  const { name, image, imagePullPolicy, restartPolicy, restartPolicyRules, resources, resizePolicy } = spec
  return {
    name,
    image,
    imagePullPolicy,
    restartPolicy,
    restartPolicyRules,
    resources,
    resizePolicy,
    // Only whether there is a probe counts.
    livenessProbe: spec.livenessProbe && {},
    readinessProbe: spec.readinessProbe && {},
    startupProbe: spec.startupProbe && {},
  }
}
