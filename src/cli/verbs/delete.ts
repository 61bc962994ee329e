import { unlink } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { PodListObject, PodObject } from '../../api/resource.ts'
import type { AppliedPlace, AppliedReply } from '../../api/sources.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { podKey } from '../../pod/values/ids.ts'
import {
  listPath,
  namespaceFlag,
  poddPodPath,
  podPath,
  readNamespace,
  readPodName,
  withQuery,
} from '../arguments/pod-argument.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { ServerError } from '../client/client.ts'
import {
  findManifestDirectory,
  readTarget,
  targetOf,
  appliedKey,
  refuseHeld,
} from '../local/manifest-target.ts'
import { filenameFlag, readManifests } from '../local/read-manifests.ts'
import { readTimeout, timeoutFlag, waitForPods } from './wait.ts'

const claimNames = ['pvc', 'persistentvolumeclaim', 'persistentvolumeclaims']
const podNames = ['po', 'pod', 'pods']

export const deleteVerb: Verb = {
  usage:
    'delete pod NAME... | -f FILE|DIRECTORY | pvc NAME --purge [--grace-period SECONDS] [--force] [-n NAMESPACE]',
  help: `Ends pods, and waits until they are gone. Of a pod that was written over the API it deletes the object, as kubectl does;
of one of the manifest directory, the file, if that has nothing else in it. A pod of a workload is replaced by a new one. With
-f it removes the files with these names, if they have nothing that the given ones lack. What comes from a URL is removed
there.

\`delete pvc NAME --purge\` deletes the data of a claim permanently. Nothing else deletes it: the data outlives the pods
that use it, the claim's document, and podd itself.`,
  flags: [
    filenameFlag,
    { name: 'wait', doc: 'Whether to wait until the pods are gone; by default yes (--wait=false).' },
    { ...timeoutFlag, doc: 'How long to wait; by default 5m.' },
    {
      name: 'grace-period',
      label: 'SECONDS',
      doc: "How long the containers may take to end, instead of the pod's own time; -1 leaves it. 0 needs --force.",
    },
    { name: 'force', doc: 'Kills the containers at once, as --grace-period=0.' },
    { name: 'purge', doc: 'Of a claim: yes, delete the data.' },
    namespaceFlag,
  ],
  examples: [
    ['delete pod web', 'remove the manifest of the pod web, and wait until it is gone'],
    ['delete pod web --grace-period=0 --force', 'kill it'],
    ['delete -f web.yaml', 'remove web.yaml from the manifest directory'],
    ['delete pvc data --purge', 'delete the contents of the claim named data'],
  ],
  async run(context) {
    const { args } = context
    if (args.value('filename') !== undefined) return deleteFiles(context)
    const [resource = '', ...rest] = args.positionals
    const slash = resource.indexOf('/')
    const kind = (slash < 0 ? resource : resource.slice(0, slash)).toLowerCase()
    const names = slash < 0 ? rest : [resource.slice(slash + 1), ...rest]
    if (podNames.includes(kind)) return deletePods(context, names)
    if (claimNames.includes(kind)) return purgeClaim(context, names)
    throw new UsageError(
      resource === '' ? 'delete what?' : `podd deletes pods, and the data of claims, not ${kind}`,
      'Remove other objects from their manifest.',
    )
  },
}

async function deletePods(context: VerbContext, names: readonly string[]): Promise<VerbResult> {
  const { args, client, signal } = context
  if (names.length === 0) throw new UsageError('delete which pod?', 'podd delete pod NAME')
  const namespace = readNamespace(args)
  const applied = await client.get<AppliedReply>('/podd/v1/applied', signal)
  const wanted = names.map((name) => readPodName(name, 'delete pod'))
  const graceSeconds = readGrace(args)
  const { items: shown } = await client.getList<PodListObject>(listPath('pods', namespace), signal)
  const paths = new Set<string>()
  const written: string[] = []
  const uids = new Set<string>()
  for (const name of wanted) {
    const pod = applied.pods.find(({ key }) => key === podKey({ namespace, name }))
    // One that has ended for good, or only waits, has no worker.
    const object = shown.findLast(({ metadata }) => metadata.name === name)
    const place = pod ?? placeOf(object)
    if (place === undefined)
      throw new PoddError('API_NotFound', `Error from server (NotFound): pods "${name}" not found`)
    if (place.source === 'api' || hasOwner(object)) {
      written.push(name)
      if (object !== undefined) uids.add(object.metadata.uid)
    } else paths.add(place.path)
  }
  const directory = paths.size === 0 ? '' : await findManifestDirectory(applied)
  for (const path of paths) checkIsOwn(path, directory)
  const keys = wanted.map((name) => podKey({ namespace, name }))
  for (const path of paths) await checkHolds(path, keys, applied)
  if (paths.size > 0) await remove(context, [...paths], applied, graceSeconds)
  for (const name of written) {
    const options = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }),
    }
    await client.remove(podPath(namespace, name), options, signal)
  }
  if (args.value('wait') !== 'false' && written.length > 0)
    await waitForPods(context, namespace, written, { kind: 'delete', uids }, readTimeout(args, 300_000))
  return { kind: 'text', text: wanted.map((name) => `pod "${name}" deleted\n`).join('') }
}

/** Seconds; undefined for each pod's own. As kubectl, 0 only with --force (kubectl `cmd/delete/delete.go`, 1.36). Throws UsageError. */
function readGrace(args: ParsedArguments): number | undefined {
  const given = args.count('grace-period', -1)
  if (args.has('force')) {
    if (given !== undefined && given > 0)
      throw new UsageError('--force and --grace-period greater than 0 cannot be specified together')
    return 0
  }
  if (given === 0) return 1
  return given === -1 ? undefined : given
}

/** A workload makes it again. */
function hasOwner(pod: PodObject | undefined): boolean {
  return pod !== undefined && 'ownerReferences' in pod.metadata
}

function placeOf(pod: PodObject | undefined): AppliedPlace | undefined {
  const { 'podd.dev/path': path, 'podd.dev/source': source } = pod?.metadata.annotations ?? {}
  return path === undefined ? undefined : { path, ...(source === 'api' && { source }) }
}

/** Throws where a file has other objects, or one without a name. */
async function checkHolds(path: string, keys: readonly string[], applied: AppliedReply): Promise<void> {
  const content = await readTarget(path, applied)
  const others = content.keys.filter((key) => !keys.includes(key))
  if (others.length === 0 && !content.isUnclear) return
  const what =
    others.length === 0 ? 'has errors, so its other objects are unknown' : `also has ${others.join(', ')}`
  throw new PoddError('MANIFEST_ELSEWHERE', `${path} ${what}`, {
    hint: `Edit the file, or remove all of it: podd delete -f ${path}`,
  })
}

async function deleteFiles(context: VerbContext): Promise<VerbResult> {
  const { args, client, signal } = context
  if (args.positionals.length > 0) throw new UsageError('-f and names exclude each other')
  const { files } = await readManifests(context, args.values('filename'))
  const applied = await client.get<AppliedReply>('/podd/v1/applied', signal)
  const directory = await findManifestDirectory(applied)
  const targets = files.map((file) => targetOf(file, directory))
  for (const { manifest, path } of targets) {
    // A file of the directory is removed as it is; a given file of the same name must contain all objects that are removed.
    if (manifest.path !== '-' && resolve(manifest.path) === path) continue
    const keys = manifest.documents.map((document) => appliedKey(document, applied))
    await checkHolds(path, keys, applied)
  }
  const paths = targets.map(({ path }) => path)
  const pods = await remove(context, paths, applied, readGrace(args))
  return { kind: 'text', text: pods.map((key) => `pod "${splitKey(key)[1]}" deleted\n`).join('') }
}

function checkIsOwn(path: string, directory: string): void {
  if (resolve(path).startsWith(`${resolve(directory)}/`)) return
  throw new PoddError('MANIFEST_ELSEWHERE', `the manifest is not in ${directory}: it comes from ${path}`, {
    hint: 'Remove it there.',
  })
}

/** Removes these files, and waits for their pods, whose names it gives. */
async function remove(
  context: VerbContext,
  paths: readonly string[],
  applied: AppliedReply,
  graceSeconds: number | undefined,
): Promise<readonly string[]> {
  const { args, client, notify, signal } = context
  const pods = applied.pods.filter(({ path }) => paths.includes(path)).map(({ key }) => key)
  for (const path of paths) {
    try {
      await unlink(path)
    } catch (error) {
      throw new PoddError('WRITE_FAILED', `cannot remove ${path}: ${errorMessage(error)}`, { cause: error })
    }
    notify(`removed ${path}`)
  }
  if (graceSeconds !== undefined) for (const key of pods) await shortenGrace(context, key, graceSeconds)
  if (args.value('wait') !== 'false') {
    const timeoutMs = readTimeout(args, 300_000)
    refuseHeld(await client.status(signal), paths, 'removed')
    for (const [namespace, own] of Map.groupBy(pods, (key) => splitKey(key)[0])) {
      const names = own.map((key) => splitKey(key)[1])
      await waitForPods(context, namespace, names, { kind: 'delete' }, timeoutMs)
    }
  }
  return pods
}

/** How long the daemon may take to see that a file is gone, and how often it is asked. */
const noticeMs = 5000
const askMs = 100

/** Of a pod whose file was removed, as soon as it terminates. */
async function shortenGrace(
  { client, clock, signal }: VerbContext,
  key: string,
  graceSeconds: number,
): Promise<void> {
  const [namespace, name] = splitKey(key)
  const untilMs = clock.monotonicMs() + noticeMs
  const path = withQuery(`${poddPodPath(namespace, name)}/end`, { gracePeriodSeconds: String(graceSeconds) })
  for (;;) {
    try {
      await client.post(path, signal)
      return
    } catch (error) {
      if (error instanceof ServerError && error.reason === 'NotFound') return
      const isEarly = error instanceof ServerError && error.reason === 'Conflict'
      if (!isEarly || clock.monotonicMs() > untilMs) throw error
    }
    await clock.sleep(askMs, signal)
  }
}

function splitKey(key: string): readonly [namespace: string, name: string] {
  const at = key.indexOf('/')
  return [key.slice(0, at), key.slice(at + 1)]
}

async function purgeClaim(
  { args, client, signal }: VerbContext,
  names: readonly string[],
): Promise<VerbResult> {
  const [name, extra] = names
  if (name === undefined || extra !== undefined)
    throw new UsageError('delete which claim?', 'podd delete pvc NAME --purge')
  if (!args.has('purge'))
    throw new UsageError(`this deletes the data of claim ${name} permanently`, 'Confirm with --purge.')
  const namespace = readNamespace(args)
  const claims = listPath('persistentvolumeclaims', namespace, '/podd/v1')
  await client.post(`${claims}/${encodeURIComponent(name)}/purge`, signal)
  return { kind: 'text', text: `persistentvolumeclaim "${name}" purged\n` }
}
