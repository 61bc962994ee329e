import type { NodeObject } from '../../api/cluster-objects.ts'
import type { ResourceList } from '../../api/resource.ts'
import type { NodeMetrics, NodeMetricsList, PodMetrics, PodMetricsList } from '../../api/usage.ts'
import { quantityNanos, quantityValue } from '../../pod/values/quantity.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import {
  allNamespacesFlag,
  listPath,
  namedInAll,
  namespaceFlag,
  readNamespace,
} from '../arguments/pod-argument.ts'
import { outputFlag, readOutputFormat } from '../arguments/verb.ts'
import type { Listing, Verb, VerbContext } from '../arguments/verb.ts'
import { titled } from '../output/print.ts'

export const topVerb: Verb = {
  usage: 'top (pods [POD] | nodes) [--containers] [--sort-by cpu|memory] [-n NAMESPACE | -A] [-o json|yaml]',
  help: `Shows the resource usage of running pods: CPU in thousandths of a core, over the second in which this command
measures (or the time since its last call, up to a minute), and memory as the working set, which the kernel can't
reclaim without killing processes of the pod. Of the node, what the whole host uses, beside what pods may use.`,
  flags: [
    { name: 'containers', doc: 'A line for each container.' },
    { name: 'sort-by', label: 'cpu|memory', doc: 'The largest first; by default by name.' },
    outputFlag,
    namespaceFlag,
    allNamespacesFlag,
  ],
  examples: [
    ['top pods', 'the pods of namespace default'],
    ['top pods -A --sort-by memory', 'all pods, the largest first'],
    ['top pod web --containers', 'the containers of one'],
    ['top nodes', 'the host'],
  ],
  async run({ args, client, signal }) {
    const [first = '', ...rest] = args.positionals
    const slash = first.indexOf('/')
    const resource = slash === -1 ? first : first.slice(0, slash)
    const [name, extra] = slash === -1 ? rest : [first.slice(slash + 1), ...rest]
    const isNode = ['nodes', 'node', 'no'].includes(resource)
    if ((!isNode && !['pods', 'pod', 'po'].includes(resource)) || extra !== undefined)
      throw new UsageError('top shows pods, and the node', 'podd top pods [POD]')
    const format = readOutputFormat(args)
    if (isNode) {
      const listing = await listNodeUsage({ client, signal }, name)
      return { kind: 'listing', listings: [listing], format, notes: [] }
    }
    const sortBy = readSort(args)
    const all = args.has('all-namespaces')
    if (all && name !== undefined) throw namedInAll()
    const namespace = readNamespace(args)
    const base = '/apis/metrics.k8s.io/v1beta1'
    const path = listPath('pods', all ? undefined : namespace, base)
    const items =
      name === undefined
        ? (await client.getList<PodMetricsList>(path, signal)).items
        : [await client.get<PodMetrics>(`${path}/${encodeURIComponent(name)}`, signal)]
    const listing = listUsage(items, {
      withNamespace: all,
      byContainer: args.has('containers'),
      sortBy,
      isSingle: name !== undefined,
    })
    const nothing = all ? 'No running pods found' : `No running pods found in namespace ${namespace}`
    return { kind: 'listing', listings: [listing], format, notes: items.length === 0 ? [nothing] : [] }
  },
}

type Sort = 'cpu' | 'memory' | undefined

function readSort(args: ParsedArguments): Sort {
  const text = args.value('sort-by')
  if (text === undefined || text === 'cpu' || text === 'memory') return text
  throw new UsageError(`cannot sort by ${JSON.stringify(text)}`, 'There are cpu and memory.')
}

interface UsageRow {
  readonly names: readonly string[]
  readonly cpuNanoCores: number
  readonly memoryBytes: number
}

function listUsage(
  pods: readonly PodMetrics[],
  options: {
    readonly withNamespace: boolean
    readonly byContainer: boolean
    readonly sortBy: Sort
    readonly isSingle: boolean
  },
): Listing {
  const { withNamespace, byContainer, sortBy } = options
  const rows = pods.flatMap(({ metadata, containers }): UsageRow[] => {
    const own = withNamespace ? [metadata.namespace, metadata.name] : [metadata.name]
    const parts = containers.map(({ name, usage }) => ({
      names: [...own, name],
      cpuNanoCores: Number(quantityNanos(usage.cpu)),
      memoryBytes: quantityValue(usage.memory),
    }))
    if (byContainer) return parts
    const sum = (of: (part: UsageRow) => number): number => parts.reduce((total, part) => total + of(part), 0)
    return [
      {
        names: own,
        cpuNanoCores: sum((part) => part.cpuNanoCores),
        memoryBytes: sum((part) => part.memoryBytes),
      },
    ]
  })
  const sorted = rows.toSorted((a, b) => (a.names.join('/') < b.names.join('/') ? -1 : 1))
  if (sortBy === 'cpu') sorted.sort((a, b) => b.cpuNanoCores - a.cpuNanoCores)
  if (sortBy === 'memory') sorted.sort((a, b) => b.memoryBytes - a.memoryBytes)
  return {
    columns: titled([
      ...(withNamespace ? ['NAMESPACE'] : []),
      ...(byContainer ? ['POD', 'NAME'] : ['NAME']),
      'CPU(cores)',
      'MEMORY(bytes)',
    ]),
    rows: sorted.map(({ names, cpuNanoCores, memoryBytes }) =>
      names.concat(`${Math.ceil(cpuNanoCores / 1e6)}m`, `${Math.floor(memoryBytes / 1024 ** 2)}Mi`),
    ),
    objects: pods,
    listKind: options.isSingle ? undefined : 'List',
  }
}

/** What the host uses, and how much that is of what pods may use (`kubectl/pkg/metricsutil/metrics_printer.go`, 1.36). */
async function listNodeUsage(
  { client, signal }: Pick<VerbContext, 'client' | 'signal'>,
  name: string | undefined,
): Promise<Listing> {
  const path = '/apis/metrics.k8s.io/v1beta1/nodes'
  const metrics =
    name === undefined
      ? (await client.getList<NodeMetricsList>(path, signal)).items
      : [await client.get<NodeMetrics>(`${path}/${encodeURIComponent(name)}`, signal)]
  const { items: nodes } = await client.get<ResourceList<NodeObject>>('/api/v1/nodes', signal)
  return {
    columns: titled(['NAME', 'CPU(cores)', 'CPU(%)', 'MEMORY(bytes)', 'MEMORY(%)']),
    rows: metrics.map(({ metadata, usage }) => {
      const node = nodes.find((each) => each.metadata.name === metadata.name)
      const { cpu = '0', memory = '0' } = node?.status.allocatable ?? {}
      const cores = Number(quantityNanos(usage.cpu))
      const bytes = quantityValue(usage.memory)
      return [
        metadata.name,
        `${Math.ceil(cores / 1e6)}m`,
        share(cores, Number(quantityNanos(cpu))),
        `${Math.floor(bytes / 1024 ** 2)}Mi`,
        share(bytes, quantityValue(memory)),
      ]
    }),
    objects: metrics,
    listKind: name === undefined ? 'List' : undefined,
  }
}

function share(used: number, whole: number): string {
  return whole > 0 ? `${Math.floor((used / whole) * 100)}%` : '<unknown>'
}
