import { settleAll } from '../../base/waits.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ActionOutcome } from './action-outcome.ts'
import { AheadWork } from './ahead.ts'
import { createSandbox, useObservedSandbox } from './create-sandbox.ts'
import { recordEvent } from './pod-context.ts'
import type { PodContext, SandboxInUse } from './pod-context.ts'
import { removeContainers, removeSandboxes } from './remove-containers.ts'
import { resizeContainers } from './resize-containers.ts'
import { finishPostStart } from './run-post-start.ts'
import { startContainer } from './start-container.ts'
import { stopContainer, stopPod } from './stop-containers.ts'

type StopAction = Extract<PodAction, { kind: 'stop-container' }>

/** What is done at once: one action, or the stops that follow one another in the plan. */
type Step =
  | Exclude<PodAction, StopAction>
  | { readonly kind: 'stop-containers'; readonly stops: readonly StopAction[] }

/**
 * Executes a plan in order, and yields each outcome as it comes, to be applied before the next action. The rest of the
 * plan is left out after a sandbox could not be created. Throws what a call threw; the pod's worker reads back the result.
 */
export async function* executeActions(
  ctx: PodContext,
  actions: readonly PodAction[],
): AsyncGenerator<ActionOutcome, void> {
  const ahead = new AheadWork(ctx, actions)
  try {
    await ctx.journal.recorded
    yield* executeSteps(ctx, actions, ahead)
  } finally {
    await ahead.settled()
  }
}

async function* executeSteps(
  ctx: PodContext,
  actions: readonly PodAction[],
  ahead: AheadWork,
): AsyncGenerator<ActionOutcome, void> {
  let sandbox: SandboxInUse | undefined
  for (const step of toSteps(actions)) {
    ctx.signals.manifest.throwIfAborted()
    ctx.pass.checkSeen()
    switch (step.kind) {
      case 'stop-pod':
        if (step.reason === 'SandboxChanged') {
          const message = 'Pod sandbox changed, it will be killed and re-created.'
          recordEvent(ctx, { type: 'Normal', reason: step.reason, message })
        }
        if (step.reason === 'CgroupRemoved') {
          const message =
            "The pod's cgroup was removed, so that its limits no longer hold: it will be killed and re-created."
          recordEvent(ctx, { type: 'Warning', reason: step.reason, message })
        }
        await ctx.journal.noteRestarts()
        await stopPod(ctx)
        break
      case 'create-sandbox': {
        const { attempt } = step
        const needs = ahead.needsOfSandbox(attempt)
        const created = await createSandbox(ctx, { attempt, needs, onSending: () => ahead.beginFiles() })
        if (created.kind === 'failed') {
          yield* created.outcomes
          return ctx.signals.manifest.throwIfAborted()
        }
        sandbox = created.sandbox
        break
      }
      case 'stop-containers':
        await ctx.journal.noteRestarts()
        await settleAll(step.stops.map((stop) => stopForSuccessor(ctx, stop)))
        break
      case 'start-container':
        sandbox ??= await useObservedSandbox(ctx, ahead.sandboxConfig)
        if (sandbox === undefined) return
        if (step.awaitedImage === undefined) yield { kind: 'fetch-superseded', container: step.spec.name }
        yield* await startContainer(ctx, step, { sandbox, ahead })
        break
      case 'finish-post-start':
        sandbox ??= await useObservedSandbox(ctx)
        if (sandbox === undefined) return
        await finishPostStart(ctx, step, sandbox)
        break
      case 'fetch-image':
        yield { kind: 'fetch-wanted', spec: step.spec }
        break
      case 'resize-containers':
        yield* await resizeContainers(ctx, step)
        break
      case 'remove-containers':
        await removeContainers(ctx, step.ids)
        break
      case 'remove-sandboxes':
        await removeSandboxes(ctx, step.ids)
        break
    }
  }
}

function* toSteps(actions: readonly PodAction[]): Generator<Step> {
  let stops: StopAction[] = []
  for (const action of actions) {
    if (action.kind === 'stop-container') {
      stops.push(action)
      continue
    }
    if (stops.length > 0) yield { kind: 'stop-containers', stops }
    stops = []
    yield action
  }
  if (stops.length > 0) yield { kind: 'stop-containers', stops }
}

/** Its successor is on record before it is stopped for another spec. */
async function stopForSuccessor(ctx: PodContext, stop: StopAction): Promise<void> {
  if (stop.cause === 'changed') await ctx.journal.claimRestart(stop.container.id)
  await stopContainer(ctx, stop)
}
