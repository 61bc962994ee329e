/**
 * What docs/GUIDE.md and the README tell a reader to type, typed: each block runs on a podd and a real containerd, in the
 * order of the page.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { poddProgram } from '../support/podd-program.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { CliResult, PoddRig } from '../support/podd-rig.ts'
import { freePort } from '../support/free-port.ts'
import { fetchKubectl } from '../support/kubectl.ts'
import { slowness } from '../support/slowness.ts'

const root = new URL('../../', import.meta.url).pathname

/** A host on which podd was just installed, as somebody in a shell sees it: podd's usual places are the rig's. */
class Reader {
  readonly #rig: PoddRig
  readonly #home: string
  readonly #places: readonly (readonly [usual: string, here: string])[]

  private constructor(rig: PoddRig, ports: readonly number[]) {
    this.#rig = rig
    this.#home = join(rig.directory, 'reader')
    this.#places = [
      ['/etc/podd/config.yaml', join(rig.directory, 'config.yaml')],
      ['/etc/podd', join(rig.directory, 'etc')],
      ['/etc/pods', rig.manifests],
      ['/var/lib/podd', rig.rootDir],
      ['/run/podd', rig.runDir],
      ['/srv/fleet', join(rig.directory, 'fleet')],
      ...['8080', '8090', '6443'].map((usual, at) => [usual, String(ports[at])] as const),
    ]
  }

  /** With the image that comes with podd imported, and nothing else. */
  static async arrive(rig: PoddRig): Promise<Reader> {
    const reader = new Reader(rig, await Promise.all([freePort(), freePort(), freePort()]))
    const bin = join(reader.#home, 'bin')
    for (const directory of [bin, join(rig.directory, 'etc')]) mkdirSync(directory, { recursive: true })
    const program = (name: string, lines: string): void =>
      writeFileSync(join(bin, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 })
    program('podd', `exec ${poddProgram()} "$@"`)
    const asked = join(reader.#home, 'restart')
    program('sudo', 'exec "$@"')
    program('kubectl', `exec ${fetchKubectl('forky')} "$@"`)
    // `podd down` asks systemd, too.
    const restart = `[ "$*" = 'restart podd' ] || exit 1; touch ${asked}; while [ -e ${asked} ]; do sleep 0.1; done`
    program('systemctl', restart)
    reader.#openConfig()
    const image = join(reader.#home, 'busybox.tar')
    execFileSync(process.execPath, [join(root, 'packaging/busybox-image.ts'), '/bin/busybox', image])
    await rig.cliOk('images', 'import', image)
    for (const name of readdirSync(join(root, 'manifests')))
      reader.write(`manifests/${name}`, readFileSync(join(root, 'manifests', name), 'utf8'))
    return reader
  }

  /** Writes the settings of the rig as people write them, so that they can be added to. */
  #openConfig(): void {
    const path = join(this.#rig.directory, 'config.yaml')
    writeFileSync(path, stringify(parse(readFileSync(path, 'utf8'))))
  }

  /** A text with the usual places as it is for this rig. */
  #here(text: string): string {
    return this.#places.reduce((result, [usual, here]) => result.replaceAll(usual, here), text)
  }

  /** And a text of this rig with the usual places. */
  #usual(text: string): string {
    return this.#places.reduceRight((result, [usual, here]) => result.replaceAll(here, usual), text)
  }

  write(path: string, text: string): void {
    const file = path.startsWith('/') ? this.#here(path) : join(this.#home, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, this.#here(text))
  }

  /** Runs lines of a shell up to the first that fails; `systemctl restart podd` restarts the rig's. */
  async type(lines: string): Promise<CliResult> {
    const ended = new Promise<CliResult>((resolve) => {
      const child = execFile(
        'bash',
        ['-euo', 'pipefail', '-c', this.#here(lines)],
        {
          cwd: this.#home,
          env: {
            ...this.#rig.env,
            PATH: `${join(this.#home, 'bin')}:${this.#rig.env['PATH'] ?? ''}`,
            PODD_SOCKET: this.#rig.socketPath,
            HOME: this.#home,
          },
        },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
          resolve({ code, stdout: this.#usual(stdout), stderr: this.#usual(stderr) })
        },
      )
      child.stdin?.end()
    })
    const over = new AbortController()
    void ended.then(() => over.abort())
    const asked = join(this.#home, 'restart')
    while (!over.signal.aborted) {
      await sleep(50)
      if (!existsSync(asked)) continue
      await this.#rig.restartDaemon()
      rmSync(asked)
    }
    return ended
  }
}

/** Lines of a terminal, whatever the time, ages, widths of columns and the pod's UID were. */
function timeless(text: string): readonly string[] {
  return text.split('\n').map((line) =>
    line
      .replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gu, 'UID')
      .replaceAll(/\d+(?:m?s|m\d+s)?/gu, '#')
      .replaceAll(/\s+/gu, ' ')
      .trim(),
  )
}

/** What `apply --wait` says while it waits: which of these come depends on the moment. */
const progress = /^default\/hello: .*\n|^.*it is not known yet .*\n|^revision \d+ failed: .*\n/gmu

describePodd('the terminal of the README', {}, (rig) => {
  it('shows what podd prints', async () => {
    const reader = await Reader.arrive(rig())
    const path = join(root, 'docs/terminal.txt')
    const shown = readFileSync(path, 'utf8')
    const commands = [...shown.matchAll(/^\$ (.*)$/gmu)].map(([, command = '']) => command)
    let printed = ''
    for (const command of commands) {
      const { stdout, stderr } = await reader.type(command)
      printed += `$ ${command}\n${`${stdout}${stderr}`.replaceAll(progress, '')}`
    }
    rig().removeManifest('hello')
    await rig().untilGone('hello')
    // After a change of what podd prints: PODD_RECORD=1, and then npm run generate.
    if (process.env['PODD_RECORD'] === '1') writeFileSync(path, printed)
    expect(timeless(printed)).toEqual(timeless(readFileSync(path, 'utf8')))
  })
})

/** A block of the guide: a file that its first line names, or lines to type; those that no test can run say so themselves. */
interface Block {
  readonly line: number
  readonly language: string
  readonly text: string
}

function listBlocks(page: string): readonly Block[] {
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gmsu)].map(({ index, 1: language = '', 2: text = '' }) => ({
    line: page.slice(0, index).split('\n').length + 1,
    language,
    text,
  }))
}

/** Does what blocks of a page say: writes the files, and types the commands, in the order of the page. */
async function follow(reader: Reader, page: string, blocks: readonly Block[]): Promise<void> {
  for (const { line, language, text } of blocks) {
    if (language === 'sh' || language === 'console') {
      const lines =
        language === 'sh' ? text : Array.from(text.matchAll(/^\$ (.*)$/gmu), ([, typed]) => typed).join('\n')
      const { code, stdout, stderr } = await reader.type(lines)
      if (code !== 0) throw new Error(`${page}:${line} exited with ${code}\n${stdout}${stderr}`)
    } else if (language === 'yaml') {
      const [, path] = /^# (\S+\.yaml)$/mu.exec(text) ?? []
      if (path === undefined) throw new Error(`${page}:${line} doesn't name its file`)
      reader.write(path, text)
    }
  }
}

describePodd('the second pod of the README', {}, (rig) => {
  it('runs by what the README says', async () => {
    const reader = await Reader.arrive(rig())
    const [, after = ''] = readFileSync(join(root, 'README.md'), 'utf8').split('\n## A second pod\n')
    const [section = ''] = after.split('\n## ')
    const blocks = listBlocks(section)
    expect(blocks.map(({ language }) => language)).toEqual(['yaml', 'console'])
    await follow(reader, 'README.md, A second pod', blocks)
    await rig().untilReady('second')
  })
})

describePodd('docs/GUIDE.md', {}, (rig) => {
  it(
    'says what works, from the first pod to the last',
    { tags: ['nightly'], timeout: 300_000 * slowness },
    async () => {
      const reader = await Reader.arrive(rig())
      reader.write('/etc/pods/hello.yaml', readFileSync(join(root, 'manifests/hello.yaml'), 'utf8'))
      await rig().untilReady('hello')
      const blocks = listBlocks(readFileSync(join(root, 'docs/GUIDE.md'), 'utf8'))
      const isUntried = ({ text }: Block): boolean => text.startsWith('# Not run by the tests')
      const untried = blocks.filter((block) => isUntried(block))
      // A registry, a registry, and install.sh.
      expect(untried).toHaveLength(3)
      expect(blocks.length).toBeGreaterThan(25)
      await follow(
        reader,
        'docs/GUIDE.md',
        blocks.filter((one) => !isUntried(one)),
      )
    },
  )
})
