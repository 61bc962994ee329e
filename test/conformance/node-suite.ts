import { execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readGinkgoReport } from './ginkgo-report.ts'
import type { SpecResult } from './ginkgo-report.ts'
import { repositoryList } from './suite-images.ts'

/** How long one batch of specs may take. */
const batchTimeout = '90m'

/** Specs of one file that run one after another. */
export interface Batch {
  /** Of no other batch. */
  readonly id: string
  readonly specs: readonly SpecResult[]
}

/** Kubernetes' own programs that judge a node. */
export interface SuitePrograms {
  /** `test/e2e` of Kubernetes as a test program. */
  readonly suite: string
  /** The program in most of its images. */
  readonly agnhost: string
}

/**
 * The programs in a directory: `e2e.test` and `agnhost`, built of the sources of the Kubernetes release that podd matches
 * (`go test -c -o e2e.test ./test/e2e`, `CGO_ENABLED=0 go build -o agnhost ./test/images/agnhost`). Throws where one is
 * missing, and says how to get it.
 */
export function findPrograms(directory: string | undefined): SuitePrograms {
  const how =
    'Build them in a checkout of Kubernetes 1.36, without cgo: `go test -c -o DIR/e2e.test ./test/e2e` and `go build -o DIR/agnhost ./test/images/agnhost`; then PODD_CONFORMANCE_PROGRAMS=DIR npm run conformance.'
  if (directory === undefined || directory === '')
    throw new Error(`PODD_CONFORMANCE_PROGRAMS names no directory with e2e.test and agnhost. ${how}`)
  const programs = { suite: join(directory, 'e2e.test'), agnhost: join(directory, 'agnhost') }
  const missing = Object.values(programs).filter((path) => !existsSync(path))
  if (missing.length > 0) throw new Error(`${missing.join(' and ')} missing. ${how}`)
  return programs
}

/** Runs Kubernetes' suite, batch by batch, against the API that a kubeconfig names. */
export class NodeSuite {
  readonly #program: string
  readonly #directory: string
  readonly #kubeconfig: string

  /** @param directory for reports and logs */
  constructor(program: string, directory: string, kubeconfig: string) {
    this.#program = program
    this.#directory = directory
    this.#kubeconfig = kubeconfig
    writeFileSync(join(directory, 'repositories.yaml'), repositoryList)
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...process.env, KUBE_TEST_REPO_LIST: join(this.#directory, 'repositories.yaml') }
  }

  /** The images that its specs name. */
  images(): readonly string[] {
    const env = { ...this.#env, KUBECONFIG: '/dev/null' }
    return execFileSync(this.#program, ['--list-images'], { env, encoding: 'utf8' }).trim().split('\n')
  }

  /** All specs of a focus, without running them. */
  list(focus: readonly string[]): readonly SpecResult[] {
    const report = join(this.#directory, 'list.json')
    const flags = ['--ginkgo.dry-run', '--provider=skeleton', `--ginkgo.json-report=${report}`, ...focus]
    const env = { ...this.#env, KUBECONFIG: '/dev/null' }
    execFileSync(this.#program, flags, { env, stdio: 'ignore' })
    return readGinkgoReport(report)
  }

  /** Runs specs of one file, one after another; resolves with what came of each. A spec that is not reached has failed. */
  async run({ id, specs }: Batch): Promise<readonly SpecResult[]> {
    const [{ file } = { file: '' }] = specs
    const name = `${file.replaceAll('/', '-')}.${id}`
    const report = join(this.#directory, `${name}.json`)
    const log = openSync(join(this.#directory, `${name}.log`), 'w')
    const names = specs.map((spec) => `${escapeRegExp(spec.name)}$`)
    const flags = [
      `--kubeconfig=${this.#kubeconfig}`,
      '--provider=skeleton',
      '--kube-api-content-type=application/json',
      '--num-nodes=1',
      '--node-os-distro=debian',
      '--prepull-images=false',
      '--allowed-not-ready-nodes=0',
      `--ginkgo.timeout=${batchTimeout}`,
      '--ginkgo.no-color',
      `--ginkgo.focus-file=${file}`,
      `--ginkgo.json-report=${report}`,
      `--ginkgo.focus=${names.join('|')}`,
    ]
    const child = spawn(this.#program, flags, { env: this.#env, stdio: ['ignore', log, log] })
    closeSync(log)
    await new Promise((resolve) => child.once('exit', resolve))
    const came = existsSync(report) ? readGinkgoReport(report) : []
    return specs.map(
      (spec) =>
        came.find((result) => result.name === spec.name && result.file === file) ?? {
          ...spec,
          state: 'failed',
          message: 'it was not reached',
          text: '',
        },
    )
  }
}

/** Go's regular expressions take a backslash before these. */
function escapeRegExp(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/gu, String.raw`\$&`)
}
