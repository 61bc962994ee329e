import type {
  ClaimObject,
  ConfigObject,
  EndpointSliceObject,
  IdleObject,
  LeaseObject,
  NamespaceObject,
  NodeObject,
  PodTemplateObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
  ServiceObject,
  WorkloadObject,
  WorkloadRevisionObject,
} from './cluster-objects.ts'
import type { EventObject, PodObject, ResourceObject } from './resource.ts'

type TableCell = string | number | boolean

/** A column of a kind's tables: of the API's Table, which kubectl prints, and of `podd get`. */
export interface KindColumn<T extends ResourceObject = ResourceObject> {
  /** As the API has it; `podd get` prints it in capitals. */
  readonly name: string
  readonly description: string
  /** `string` unless said. */
  readonly type?: 'string' | 'integer' | 'boolean' | 'date'
  /** Only with `-o wide`. */
  readonly wide?: boolean
  /** Which of the two has it, where not both have. */
  readonly only?: 'kubectl' | 'podd'
  readonly cell: (object: T, nowMs: number) => TableCell
}

/** meta/v1 TableRowCondition: kubectl leaves out rows that are `Completed` where it is asked to. */
export interface RowCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** One kind that the API serves and the command line shows. */
export interface ServedKind {
  /** In paths, and for the command line. */
  readonly resource: keyof ServedResources
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly apiVersion: string
  readonly kind: string
  readonly listKind: string
  readonly namespaced: boolean
  /** The verbs of the kind, as in Kubernetes. */
  readonly verbs: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly ApiSubresource[]
  /** Its objects expire: their removal is not reported to watchers. */
  readonly expires: boolean
  /** The root of paths that serve its tables: podd's own where the objects hold values that no table may show. */
  readonly tableRoot: string
  /** Of its paths: `/api/v1`, or `/apis/GROUP/VERSION`. */
  readonly root: string
  /** What a field selector may name beside `metadata.name` and `metadata.namespace`. */
  readonly fields: Readonly<Record<string, (object: ResourceObject) => string>>
  /** The cells of an object of another kind are empty. */
  readonly columns: readonly KindColumn[]
  conditions(object: ResourceObject): readonly RowCondition[]
}

/** The part of a kind that its routes need; also for kinds derived from another one's objects. */
export interface RoutedKind extends Omit<ServedKind, 'resource'> {
  readonly resource: string
}

/** The entry of a kind; omitted fields have defaults. */
interface KindEntry<T extends ResourceObject>
  extends
    Pick<RoutedKind, 'resource' | 'kind'>,
    Partial<Omit<ServedKind, 'resource' | 'singular' | 'kind' | 'fields' | 'columns' | 'conditions'>> {
  readonly fields?: Readonly<Record<string, (object: T) => string>>
  readonly columns: readonly KindColumn<T>[]
  readonly conditions?: (object: T) => readonly RowCondition[]
}

export function servedKind<T extends ResourceObject>(
  entry: KindEntry<T> & Pick<ServedKind, 'resource'>,
): ServedKind {
  return { ...routedKind(entry), resource: entry.resource }
}

export function routedKind<T extends ResourceObject>(entry: KindEntry<T>): RoutedKind {
  const isOfKind = (object: ResourceObject): object is T => object.kind === entry.kind
  const { fields = {}, columns, conditions = () => [] } = entry
  const apiVersion = entry.apiVersion ?? 'v1'
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return {
    apiVersion,
    root,
    singular: entry.kind.toLowerCase(),
    shortNames: [],
    namespaced: true,
    expires: false,
    tableRoot: root,
    verbs: readVerbs,
    categories: [],
    subresources: [],
    ...entry,
    listKind: `${entry.kind}List`,
    fields: Object.fromEntries(
      Object.entries(fields).map(([field, read]) => [
        field,
        (object: ResourceObject) => (isOfKind(object) ? read(object) : ''),
      ]),
    ),
    columns: columns.map((each) =>
      withCell(each, (object, nowMs) => (isOfKind(object) ? each.cell(object, nowMs) : '')),
    ),
    conditions: (object) => (isOfKind(object) ? conditions(object) : []),
  }
}

export function columnsFor(
  reader: 'kubectl' | 'podd',
  { columns }: Pick<ServedKind, 'columns'>,
): readonly KindColumn[] {
  return columns.filter(({ only = reader }) => only === reader)
}

/** The same column of objects in another form. */
export function withCell<From extends ResourceObject, To extends ResourceObject>(
  column: KindColumn<From>,
  cell: KindColumn<To>['cell'],
): KindColumn<To> {
  return { ...column, cell }
}

export function column<T extends ResourceObject>(
  name: string,
  description: string,
  cell: KindColumn<T>['cell'],
): KindColumn<T> {
  return { name, description, cell }
}

export function wideColumn<T extends ResourceObject>(
  name: string,
  description: string,
  cell: KindColumn<T>['cell'],
): KindColumn<T> {
  return { name, description, wide: true, cell }
}

export const nameColumn: KindColumn = column(
  'Name',
  "The object's name, unique among those of its kind in its namespace.",
  ({ metadata }) => metadata.name,
)

export const ageColumn: KindColumn = column(
  'Age',
  'The time since the object was created.',
  ({ metadata }, nowMs) => formatAgeOf(metadata.creationTimestamp, nowMs),
)

/** The kind as discovery shows it. */
export function toApiResource(kind: RoutedKind): ApiResource {
  const [version = '', group = ''] = kind.apiVersion.split('/').toReversed()
  const { resource, singular, namespaced, verbs, shortNames, categories, subresources } = kind
  const names = { resource, singular, kind: kind.kind, namespaced }
  return { group, version, ...names, verbs, shortNames, categories, subresources }
}

/** A resource as discovery shows it: meta/v1 APIResource. */
export interface ApiResource {
  /** Empty: the core group. */
  readonly group: string
  readonly version: string
  /** Plural, in paths. */
  readonly resource: string
  readonly singular: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  /** `all`: what `kubectl get all` lists. */
  readonly categories: readonly string[]
  readonly subresources: readonly ApiSubresource[]
}

interface ApiSubresource {
  readonly name: string
  readonly verbs: readonly string[]
  /** The kind of requests and responses, where it isn't the resource's own. */
  readonly kind?: string
  /** `group/version` of that kind, where it isn't the resource's. */
  readonly apiVersion?: string
}

export const readVerbs: readonly string[] = ['get', 'list', 'watch']
/** The verbs of kinds that can be written over the API. */
export const writeVerbs: readonly string[] =
  'create delete deletecollection get list patch update watch'.split(' ')

/** The verbs of kinds without stored objects: they are computed on request. */
export const computedResources: readonly ApiResource[] = [
  review('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview'),
  review('authorization.k8s.io', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview'),
  review('authorization.k8s.io', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview'),
  metrics('nodes', 'NodeMetrics', false),
  metrics('pods', 'PodMetrics', true),
]

function review(group: string, resource: string, kind: string): ApiResource {
  const names = { group, version: 'v1', resource, singular: kind.toLowerCase(), kind }
  return { ...names, namespaced: false, verbs: ['create'], shortNames: [], categories: [], subresources: [] }
}

function metrics(resource: string, kind: string, namespaced: boolean): ApiResource {
  const names = { group: 'metrics.k8s.io', version: 'v1beta1', resource, singular: '', kind }
  return { ...names, namespaced, verbs: ['get', 'list'], shortNames: [], categories: [], subresources: [] }
}

/** The objects that are served, by the names of their resources. */
export interface ServedResources {
  readonly pods: PodObject
  readonly events: EventObject
  readonly configmaps: ConfigObject
  readonly secrets: ConfigObject
  readonly persistentvolumeclaims: ClaimObject
  readonly namespaces: NamespaceObject
  readonly serviceaccounts: ServiceAccountObject
  readonly nodes: NodeObject
  readonly priorityclasses: PriorityClassObject
  readonly runtimeclasses: RuntimeClassObject
  readonly leases: LeaseObject
  readonly podtemplates: PodTemplateObject
  readonly roles: IdleObject
  readonly rolebindings: IdleObject
  readonly clusterroles: IdleObject
  readonly clusterrolebindings: IdleObject
  readonly poddisruptionbudgets: IdleObject
  readonly storageclasses: IdleObject
  readonly ingressclasses: IdleObject
  readonly customresourcedefinitions: IdleObject
  readonly services: ServiceObject
  readonly deployments: WorkloadObject
  readonly statefulsets: WorkloadObject
  readonly daemonsets: WorkloadObject
  readonly jobs: WorkloadObject
  readonly cronjobs: WorkloadObject
  readonly endpointslices: EndpointSliceObject
  readonly replicasets: WorkloadRevisionObject
  readonly controllerrevisions: WorkloadRevisionObject
}

/**
 * A duration as kubectl shows it: at most two units, fewer for longer ones (apimachinery's
 * `pkg/util/duration.HumanDuration`, 1.36).
 */
export function formatAge(ageMs: number): string {
  const seconds = Math.floor(ageMs / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return withRest(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return withRest(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return withRest(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.floor(days / 365)
  return days < 365 * 8 ? withRest(years, 'y', days % 365, 'd') : `${years}y`
}

function withRest(count: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${count}${unit}` : `${count}${unit}${rest}${restUnit}`
}

/** The age of an RFC 3339 time; `<unknown>` where there is none. */
export function formatAgeOf(time: string | undefined, nowMs: number): string {
  const timeMs = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(timeMs) ? '<unknown>' : formatAge(nowMs - timeMs)
}
