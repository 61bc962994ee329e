import type { ContainerId } from '../../pod/values/ids.ts'
import type { ContainerSpec, Probe } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerHistory, EndedContainer } from '../../pod/state/pod-record.ts'
import type { Retry, Retries } from './backoff.ts'
import type { PodAction, PodPlan } from './pod-action.ts'
import type { PodFacts } from './pod-facts.ts'

/** Facts as JSON holds them. */
export interface FactsJson extends Omit<PodFacts, 'restartRequested' | 'restartsDue' | 'restartAll'> {
  readonly restartRequested?: readonly ContainerId[]
  readonly restartsDue?: readonly ContainerId[]
  readonly restartAll?: readonly ContainerId[]
}

/**
 * The facts for a log, from which the same plan can be computed again. Only what the deciders read is in it: nothing of a
 * container's environment, command, hooks or mounts, no labels and annotations, and no text that a container or the
 * runtime wrote.
 */
export function factsToJson(facts: PodFacts): FactsJson {
  const none = new Set<ContainerId>()
  const { restartRequested = none, restartsDue = none, restartAll = none } = facts
  return {
    pod: reducePod(facts.pod),
    observed: reduceObserved(facts.observed),
    history: mapValues(facts.history, reduceHistory),
    probes: facts.probes,
    containerFacts: facts.containerFacts,
    retries: reduceRetries(facts.retries),
    ...(facts.blocked === undefined ? {} : { blocked: { ...facts.blocked, message: '' } }),
    ...(restartRequested.size === 0 ? {} : { restartRequested: [...restartRequested] }),
    ...(restartsDue.size === 0 ? {} : { restartsDue: [...restartsDue] }),
    ...(restartAll.size === 0 ? {} : { restartAll: [...restartAll] }),
    ...(facts.postStartsDue === undefined ? {} : { postStartsDue: facts.postStartsDue }),
    ...(facts.isCgroupRemoved === true ? { isCgroupRemoved: true } : {}),
    resizeRefusal: facts.resizeRefusal,
    podResources: facts.podResources,
    nowMs: facts.nowMs,
    bootId: facts.bootId,
    limits: facts.limits,
  }
}

/** What factsToJson wrote, maybe read back from JSON text. */
export function factsFromJson({ restartRequested, restartsDue, restartAll, ...facts }: FactsJson): PodFacts {
  return {
    ...facts,
    restartRequested: new Set(restartRequested),
    restartsDue: new Set(restartsDue),
    restartAll: new Set(restartAll),
  }
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

function reducePod({ apiVersion, kind, metadata, spec }: Pod): Pod {
  return {
    apiVersion,
    kind,
    metadata: { name: metadata.name, namespace: metadata.namespace, labels: {}, annotations: {} },
    spec: {
      initContainers: spec.initContainers.map((container) => reduceContainer(container)),
      containers: spec.containers.map((container) => reduceContainer(container)),
      ephemeralContainers: spec.ephemeralContainers.map((container) => reduceContainer(container)),
      restartPolicy: spec.restartPolicy,
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
      dnsPolicy: spec.dnsPolicy,
      enableServiceLinks: spec.enableServiceLinks,
      hostNetwork: spec.hostNetwork,
      hostPID: spec.hostPID,
      hostIPC: spec.hostIPC,
      shareProcessNamespace: spec.shareProcessNamespace,
      setHostnameAsFQDN: spec.setHostnameAsFQDN,
      volumes: [],
      imagePullSecrets: [],
      hostAliases: [],
      ...(spec.resources === undefined ? {} : { resources: spec.resources }),
    },
  }
}

/** Deciders only check whether there is a probe. */
const someProbe: Probe = {
  initialDelaySeconds: 0,
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
}

function reduceContainer(spec: ContainerSpec): ContainerSpec {
  const { imagePullPolicy, restartPolicy } = spec
  return {
    name: spec.name,
    image: spec.image,
    ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
    restartPolicyRules: spec.restartPolicyRules,
    resources: spec.resources,
    resizePolicy: spec.resizePolicy,
    ...(spec.livenessProbe === undefined ? {} : { livenessProbe: someProbe }),
    ...(spec.readinessProbe === undefined ? {} : { readinessProbe: someProbe }),
    ...(spec.startupProbe === undefined ? {} : { startupProbe: someProbe }),
    command: [],
    args: [],
    ports: [],
    env: [],
    envFrom: [],
    volumeMounts: [],
    terminationMessagePath: '',
    terminationMessagePolicy: spec.terminationMessagePolicy,
    stdin: spec.stdin,
    stdinOnce: spec.stdinOnce,
    tty: spec.tty,
  }
}

function reduceObserved({ uid, namespace, name, sandboxes, containers }: ObservedPod): ObservedPod {
  return {
    uid,
    namespace,
    name,
    sandboxes: sandboxes.map((sandbox) => ({ ...sandbox, annotations: {} })),
    containers: containers.map((container): ObservedContainer => ({
      ...container,
      user: undefined,
      message: '',
      annotations: {},
    })),
  }
}

function reduceHistory(history: ContainerHistory): ContainerHistory {
  return { ...history, ended: reduceEnd(history.ended), endedBefore: reduceEnd(history.endedBefore) }
}

function reduceEnd(end: EndedContainer | undefined): EndedContainer | undefined {
  return end === undefined ? undefined : { ...end, message: '' }
}

function reduceRetries({ sandbox, resize, containers }: Retries): Retries {
  const reduce = (retry: Retry | undefined): Retry | undefined =>
    retry === undefined ? undefined : { ...retry, waiting: { reason: retry.waiting.reason, message: '' } }
  return {
    sandbox: reduce(sandbox),
    resize: reduce(resize),
    containers: mapValues(containers, (retries) => mapValues(retries, reduce)),
  }
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))
}
