import { errorMessage, PoddError } from '../../base/errors.ts'
import { commandChunks, commandOutput } from '../../host/run-command.ts'
import { ctrArgs, hasLocalTransfers, lastLine } from './import-image.ts'
import type { ImageImportTarget } from './import-image.ts'

/**
 * The images of these names as an OCI archive, which `docker load` takes too, as it is read. Throws PoddError
 * IMAGE_EXPORT, before the first byte where layers are missing.
 */
export async function* exportImages(
  target: ImageImportTarget,
  names: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  for (const name of names) await checkComplete(target, name)
  const flags = hasLocalTransfers(target) ? ['--local'] : []
  const args = [...ctrArgs(target), 'images', 'export', ...flags, '-', ...names]
  try {
    yield* commandChunks(target.ctrPath, args, signal)
  } catch (error) {
    signal.throwIfAborted()
    const message = `cannot export ${names.join(', ')}: ${lastLine(errorMessage(error))}`
    throw new PoddError('IMAGE_EXPORT', message, { cause: error })
  }
}

/** containerd keeps no layers of what it pulled (`discard_unpacked_layers`): they can't be exported. */
async function checkComplete(target: ImageImportTarget, name: string): Promise<void> {
  const { snapshotter } = target
  const flags = snapshotter === undefined ? [] : ['--snapshotter', snapshotter]
  const args = [...ctrArgs(target), 'images', 'check', ...flags, `name==${JSON.stringify(name)}`]
  // Where that can't be determined, the export itself reports it.
  const output = await commandOutput(target.ctrPath, args).catch(() => '')
  const found = parseIncomplete(output, name)
  if (found === undefined) return
  const { present, required } = found
  const message = `cannot export ${name}: containerd has only ${present} of its ${required} blobs; the layers of an image that was pulled are deleted once they are unpacked`
  throw new PoddError('IMAGE_EXPORT', message, {
    hint: 'Only images that were imported can be exported. Copy it from its registry to an archive instead: `skopeo copy docker://NAME docker-archive:FILE.tar:NAME`.',
  })
}

/**
 * Reads what `ctr images check` says of an image, `incomplete (2/3)` of its config and layers; undefined where it
 * has all of them.
 */
export function parseIncomplete(
  output: string,
  name: string,
): { readonly present: number; readonly required: number } | undefined {
  const line = output.split('\n').find((each) => each.startsWith(`${name} `) || each.startsWith(`${name}\t`))
  const [, present, required] = /\sincomplete \((\d+)\/(\d+)\)/u.exec(line ?? '') ?? []
  return required === undefined ? undefined : { present: Number(present), required: Number(required) }
}
