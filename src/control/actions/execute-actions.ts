import { errorMessage } from '../../base/errors.ts'
import { settleAll } from '../../base/settle-all.ts'
import { isCriError } from '../../cri/cri-error.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import { createSandbox, useObservedSandbox } from './create-sandbox.ts'
import { fetchImagesAhead } from './fetch-images.ts'
import { OutdatedView } from './interrupted.ts'
import { recordEvent } from './pod-context.ts'
import type { PodContext, SandboxInUse } from './pod-context.ts'
import { resizeContainers } from './resize-containers.ts'
import { startContainer } from './start-container.ts'
import { stopContainer, stopPod } from './stop-containers.ts'

/** `stop`: the rest of the plan rests on this action, which failed; the pod is looked at again later. */
type Outcome = 'done' | 'stop'

type Executors = {
  readonly [Kind in PodAction['kind']]: (
    ctx: PodContext,
    action: Extract<PodAction, { kind: Kind }>,
  ) => Promise<Outcome>
}

/** What carries out each kind of action. */
const executors: Executors = {
  'stop-pod': async (ctx, { reason }) => {
    if (reason === 'SandboxChanged') {
      const message = 'Pod sandbox changed, it will be killed and re-created.'
      recordEvent(ctx, { type: 'Normal', reason, message })
    }
    await stopPod(ctx)
    return 'done'
  },
  'create-sandbox': async (ctx, action) => ((await createSandbox(ctx, action.attempt)) ? 'done' : 'stop'),
  'stop-container': async (ctx, action) => {
    if (action.cause === 'changed') await ctx.claimRestart(action.container.id)
    await stopContainer(ctx, action)
    return 'done'
  },
  'start-container': async (ctx, action) => {
    const sandbox = await sandboxInUse(ctx)
    if (sandbox === undefined) return 'stop'
    await startContainer(ctx, sandbox, action)
    return 'done'
  },
  'fetch-image': async (ctx, { spec }) => {
    ctx.fetchAhead(spec.name, (signal) => fetchImagesAhead(ctx, spec, signal))
    return 'done'
  },
  'resize-containers': async (ctx, action) => {
    await resizeContainers(ctx, action)
    return 'done'
  },
  'remove-containers': async (ctx, action) => {
    await settleAll(action.ids.map((id) => removeContainer(ctx, id)))
    return 'done'
  },
  'remove-sandboxes': async (ctx, action) => {
    await settleAll(action.ids.map((id) => removeSandbox(ctx, id)))
    return 'done'
  },
}

/**
 * Executes a plan in order. Containers that are stopped one after another in the plan are stopped
 * at the same time. Throws what a call threw; the pod's worker reads back the result.
 */
export async function executeActions(ctx: PodContext, actions: readonly PodAction[]): Promise<void> {
  if (actions[0]?.kind === 'create-sandbox') foreseeImages(ctx, actions)
  for (let index = 0; index < actions.length;) {
    ctx.manifestSignal.throwIfAborted()
    ctx.checkSeen()
    const end = actions.findIndex((action, at) => at >= index && action.kind !== 'stop-container')
    const together = end === index ? [] : actions.slice(index, end === -1 ? undefined : end)
    if (together.length > 0) {
      await settleAll(together.map((action) => execute(ctx, action)))
      index += together.length
      continue
    }
    const action = actions[index]
    if (action === undefined || (await execute(ctx, action)) === 'stop') return
    index += 1
  }
}

/** Asks for the images of the containers to be started while their sandbox is made. */
function foreseeImages(ctx: PodContext, actions: readonly PodAction[]): void {
  for (const action of actions) {
    if (action.kind !== 'start-container') continue
    const { image } = action.spec
    if (ctx.foreseen.has(image) || parseImageName(image) === undefined) continue
    const found = ctx.images.find({ pod: ctx.ref, container: action.spec })
    // Who needs it hears of a failure.
    found.catch(() => undefined)
    ctx.foreseen.set(image, found)
  }
}

function execute(ctx: PodContext, action: PodAction): Promise<Outcome> {
  switch (action.kind) {
    case 'stop-pod':
      return executors[action.kind](ctx, action)
    case 'create-sandbox':
      return executors[action.kind](ctx, action)
    case 'stop-container':
      return executors[action.kind](ctx, action)
    case 'start-container':
      return executors[action.kind](ctx, action)
    case 'fetch-image':
      return executors[action.kind](ctx, action)
    case 'resize-containers':
      return executors[action.kind](ctx, action)
    case 'remove-containers':
      return executors[action.kind](ctx, action)
    case 'remove-sandboxes':
      return executors[action.kind](ctx, action)
  }
}

async function sandboxInUse(ctx: PodContext): Promise<SandboxInUse | undefined> {
  ctx.sandbox ??= await useObservedSandbox(ctx)
  return ctx.sandbox
}

/** containerd says for a moment of a container that has ended that it runs still, or of one whose start was cancelled that it starts. */
const settleDelaysMs = [10, 40, 160, 640, 2560]

async function removeWhenSettled(
  ctx: PodContext,
  id: string,
  beforeEach: () => Promise<void>,
): Promise<void> {
  for (const delayMs of settleDelaysMs) {
    await beforeEach()
    try {
      await ctx.host.calls.removeContainer({ containerId: id })
      return
    } catch (error) {
      if (!/container is (still running|in starting state)/u.test(errorMessage(error))) throw error
      await ctx.clock.sleep(delayMs, ctx.signal)
    }
  }
  await beforeEach()
  await ctx.host.calls.removeContainer({ containerId: id })
}

/** Throws OutdatedView where it was started after all: the runtime would end what runs for its removal. */
async function checkUnstarted(ctx: PodContext, id: string): Promise<void> {
  try {
    const { status } = await ctx.host.calls.containerStatus({ containerId: id })
    if (status?.state !== 'CONTAINER_CREATED') throw new OutdatedView()
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_NOT_FOUND')) throw error
  }
}

async function removeContainer(ctx: PodContext, id: string): Promise<void> {
  const container = ctx.observed.containers.find((candidate) => candidate.id === id)
  const isCreated = container?.state === 'created' && container.cancelled === undefined
  await removeWhenSettled(ctx, id, async () => (isCreated ? checkUnstarted(ctx, id) : undefined))
  if (container === undefined) return
  await ctx.host.logs.remove(ctx.ref, container)
  await ctx.host.volumes.removeTerminationLog(ctx.ref.uid, container.name, container.restartCount)
}

async function removeSandbox(ctx: PodContext, id: string): Promise<void> {
  await ctx.host.calls.stopPodSandbox({ podSandboxId: id })
  await ctx.host.calls.removePodSandbox({ podSandboxId: id })
}
