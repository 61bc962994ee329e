import { readFileSync } from 'node:fs'

/** What came of one spec of Kubernetes' suite. */
export interface SpecResult {
  /** Its containers' texts and its own, as `--ginkgo.focus` matches them. */
  readonly name: string
  /** Beneath `test/e2e`. */
  readonly file: string
  readonly state: 'passed' | 'failed' | 'skipped'
  /** Why it failed or skipped itself; its first line. */
  readonly message: string
  /** All of it. */
  readonly text: string
  readonly seconds: number
  readonly isNodeConformance: boolean
  readonly isSerial: boolean
}

interface GinkgoSpec {
  readonly LeafNodeType: string
  readonly LeafNodeText: string
  readonly LeafNodeLocation: { readonly FileName: string }
  readonly ContainerHierarchyTexts: readonly string[] | null
  readonly State: string
  readonly RunTime: number
  readonly Failure?: { readonly Message?: string }
}

/** Reads a report that `--ginkgo.json-report` wrote. Throws where there is none. */
export function readGinkgoReport(path: string): readonly SpecResult[] {
  const suites: readonly { readonly SpecReports: readonly GinkgoSpec[] | null }[] = JSON.parse(
    readFileSync(path, 'utf8'),
  )
  return suites
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .filter(({ LeafNodeType }) => LeafNodeType === 'It')
    .map((spec) => {
      const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' ')
      return {
        name,
        file: spec.LeafNodeLocation.FileName.replace(/^.*\/test\/e2e\//u, ''),
        state: spec.State === 'passed' ? 'passed' : isSkipped(spec.State) ? 'skipped' : 'failed',
        text: spec.Failure?.Message ?? '',
        message: (spec.Failure?.Message ?? '').trim().split('\n')[0] ?? '',
        seconds: Math.round(spec.RunTime / 1e9),
        isNodeConformance: name.includes('[NodeConformance]'),
        isSerial: name.includes('[Serial]'),
      }
    })
}

/** One that was interrupted came to nothing, too. */
function isSkipped(state: string): boolean {
  return state === 'skipped' || state === 'pending' || state === 'interrupted'
}
