/** The README's picture of the status page: what src/page draws of a host that is made up, in a picture that scales. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PageState } from '../src/page/page-state.ts'
import { poddVersion } from '../src/api/resource.ts'
import { containerStatus, podObject, terminated } from '../test/support/pod-objects.ts'

const width = 1120
const height = 750
const nowMs = Date.parse('2026-03-01T12:00:00Z')
const before = (minutes: number): string => new Date(nowMs - minutes * 60_000).toISOString()

interface PageModule {
  /** Draws by `document`. */
  readonly overview: (state: PageState, openPods: ReadonlySet<string>, nowMs: number) => readonly unknown[]
}

/** The text of docs/status-page.svg. */
export async function statusPageSvg(): Promise<string> {
  const page = join(import.meta.dirname, '../src/page')
  // By a name that is made here: the page's own types are those of browsers.
  const { overview }: PageModule = await import(join(page, 'overview.ts'))
  const drawingDocument = {
    createElement: (tag: string) => new PageElement(tag),
    createElementNS: (namespace: string, tag: string) => new PageElement(tag, { xmlns: namespace }),
    createTextNode: (text: string) => text,
  }
  Object.defineProperty(globalThis, 'document', { value: drawingDocument, configurable: true })
  // The pods and the host: what is below them doesn't fit.
  const main = overview(state, new Set(), nowMs).slice(0, 2).join('\n')
  Reflect.deleteProperty(globalThis, 'document')
  // By the width of a screen, which a picture hasn't.
  const css = readFileSync(join(page, 'page.css'), 'utf8').replaceAll(
    /@media \((?:min|max)-width[^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}/gu,
    '',
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The status page of a host with a broken pod">
<!-- Made of src/page by \`npm run generate\`. -->
<style>
${css.replaceAll(/\s+/gu, ' ').trim()}
rect { fill: var(--back); stroke: var(--line) }
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
<foreignObject width="${width}" height="${height}">
<body xmlns="http://www.w3.org/1999/xhtml" style="background:none">
<header><h1><a href="#">podd</a> <span>gateway-7</span></h1><p id="connection">live</p></header>
<main>
${main}
</main>
</body>
</foreignObject>
</svg>
`
}

/** As much of an element as the page needs to be drawn once: its text is XML. */
class PageElement {
  readonly #tag: string
  readonly #attributes: Map<string, string>
  readonly #children: string[] = []

  constructor(tag: string, attributes: Readonly<Record<string, string>> = {}) {
    this.#tag = tag
    this.#attributes = new Map(Object.entries(attributes))
  }

  setAttribute(name: string, value: string): void {
    this.#attributes.set(name, value)
  }

  append(child: string | PageElement): void {
    this.#children.push(typeof child === 'string' ? escape(child) : child.toString())
  }

  toString(): string {
    const attributes = Array.from(this.#attributes, ([name, value]) => ` ${name}="${escape(value)}"`)
    return `<${[this.#tag, ...attributes].join('')}>${this.#children.join('')}</${this.#tag}>`
  }
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

const names = ['alarm', 'broker', 'dashboard-0', 'dashboard-1', 'database-0', 'meter-reader'] as const
const times = Array.from({ length: 41 }, (_, at) => nowMs - (40 - at) * 90_000)

function series(
  cpuMillis: number,
  mebibytes: number,
  from = 0,
): { cpuMillis: number[]; memoryBytes: number[] } {
  return {
    cpuMillis: times.map((_, at) =>
      Math.round(cpuMillis * (2 + Math.sin(from + at / 3) + Math.sin(from + at * 1.7) / 3)),
    ),
    memoryBytes: times.map((_, at) => Math.round(mebibytes * 1024 ** 2 * (1 + at / 200))),
  }
}

const created = { creationTimestamp: before(4 * 24 * 60) }
const broken = podObject({
  name: 'plc-gateway',
  metadata: { creationTimestamp: before(24) },
  status: {
    conditions: [{ type: 'Ready', status: 'False' }],
    containerStatuses: [
      containerStatus('main', {
        ready: false,
        restartCount: 7,
        containerID: 'containerd://1',
        state: {
          waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed container' },
        },
        lastState: terminated(1),
      }),
    ],
  },
})

const state: PageState = {
  pods: [broken, ...names.map((name) => podObject({ name, metadata: created }))],
  lastLines: new Map([
    [
      'uid-plc-gateway main 7 containerd://1 true',
      'fatal: can’t open /dev/ttyUSB0: no such file or directory',
    ],
  ]),
  refusals: [],
  events: [],
  node: {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'gateway-7', uid: 'uid-node', creationTimestamp: before(4 * 24 * 60) },
    spec: {},
    status: {
      capacity: { cpu: '4', memory: '8130016Ki' },
      allocatable: { pods: '110' },
      conditions: [],
      addresses: [{ type: 'InternalIP', address: '192.0.2.7' }],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      nodeInfo: { osImage: 'Debian GNU/Linux 13 (trixie)', kernelVersion: '6.12.48-amd64' },
      images: [],
    },
  },
  status: {
    version: poddVersion,
    pid: 42,
    startedAt: before(4 * 24 * 60),
    runtime: { endpoint: 'embedded', healthy: true, name: 'containerd', version: '2.1.4', calls: {} },
    sources: [],
    problems: [],
    crashes: [],
    jobs: [],
  },
  usage: {
    periodSeconds: 90,
    spanSeconds: 3600,
    times,
    node: series(420, 2150),
    pods: names.map((name, at) =>
      Object.assign({ uid: `uid-${name}` }, series(8 + at * 15, 30 + at * 44, at)),
    ),
  },
}
