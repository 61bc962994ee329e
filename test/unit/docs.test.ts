import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, dirname, join, matchesGlob } from 'node:path'
import { describe, expect, test } from 'vitest'
import { globalFlags } from '../../src/cli/help.ts'
import { verbs } from '../../src/cli/verbs.ts'
import { listOptions } from '../../src/config/options.ts'
import { isPodDocument } from '../../src/pod/objects/document.ts'
import { decodeDocuments } from '../../src/pod/decode/decode-documents.ts'

interface PackageJson {
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const packageJson: PackageJson = JSON.parse(read('package.json'))
const suites = new Set(
  Array.from(read('vitest.config.ts').matchAll(/name: '(\w+)'/g), ([, name]) => `test/${name}`),
)
const pages = [
  ...readdirSync('.').filter((name) => name.endsWith('.md')),
  'proto/README.md',
  ...['docs', 'docs/notes'].flatMap((directory) =>
    readdirSync(directory).flatMap((name) => (name.endsWith('.md') ? `${directory}/${name}` : [])),
  ),
]
const manifests = readdirSync('manifests').map((name) => `manifests/${name}`)

function read(path: string): string {
  return readFileSync(path, 'utf8')
}

/** What stands in backticks in the first column of the tables under a heading. */
function namesInTable(page: string, heading: string): string[] {
  const [, section = ''] = read(page).split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  return own
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
    .sort()
}

describe('docs/DEPENDENCIES.md names each package, and no other', () => {
  test.each([
    ['In the daemon', packageJson.dependencies],
    ['The runtime under it', packageJson.optionalDependencies],
    ['For development', packageJson.devDependencies],
  ])('%s', (heading, packages) => {
    expect(namesInTable('docs/DEPENDENCIES.md', heading)).toEqual(Object.keys(packages).sort())
  })

  test('From the distribution', () => {
    const asking = `${read('packaging/distribution.sh')}${read('packaging/node-modules.sh')}`
    const asked = asking.matchAll(/(?:\|\||\)) echo ([a-z0-9+-]+)(?= ;;|$)/gm)
    const packages = new Set(Array.from(asked, ([, name = '']) => name))
    expect(new Set(namesInTable('docs/DEPENDENCIES.md', 'From the distribution'))).toEqual(packages)
    const [, depends = ''] = /^Depends: (.*)$/m.exec(read('packaging/debian/control')) ?? []
    const first = depends.split(', ').map((each) => each.split(' ')[0] ?? '')
    expect(new Set(first.filter((name) => name !== 'libc6'))).toEqual(packages)
  })
})

/** The rows of the table of rooms in docs/ARCHITECTURE.md. */
function listRooms(): readonly { readonly room: string; readonly job: string }[] {
  const [, table = ''] = read('docs/ARCHITECTURE.md').split('\n| room | its job |\n')
  const [rows = ''] = table.split('\n\n')
  return [...rows.matchAll(/^\| `(src\/[\w/-]+\/)` \| (.*) \|$/gm)].map(([, room = '', job = '']) => ({
    room,
    job,
  }))
}

function filesOf(directory: string, recursive = false): readonly string[] {
  return readdirSync(directory, { recursive, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map(({ name }) => name.slice(0, -'.ts'.length))
}

test('docs/ARCHITECTURE.md names each room of src, each room within a room, and no other', () => {
  const named = listRooms().map(({ room }) => room)
  const rooms = readdirSync('src', { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map(({ parentPath }) => `${parentPath}/`)
  expect(named.toSorted()).toEqual([...new Set(rooms)].filter((room) => room !== 'src/').toSorted())
})

test('docs/ARCHITECTURE.md names files where they are: of each room, its own', () => {
  const verbs = filesOf('src/cli/verbs', true).map((name) => name.replace('-verb', ''))
  const missing = listRooms().flatMap(({ room, job }) => {
    const files = [...filesOf(room), ...verbs]
    return [...job.matchAll(/`([a-z0-9*]+(?:-[a-z0-9*]+)*)`/g)]
      .map(([, name = '']) => name)
      .filter((name) => !files.some((file) => matchesGlob(file, name)))
      .map((name) => `${room}${name}`)
  })
  expect(missing).toEqual([])
})

test('docs/ARCHITECTURE.md names files in each room of many', () => {
  const silent = listRooms()
    .filter(({ room, job }) => filesOf(room).length > 8 && !/`[a-z0-9*]+(?:-[a-z0-9*]+)*`/.test(job))
    .map(({ room }) => room)
  expect(silent).toEqual([])
})

/** What GitHub makes of the headings of a page. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
}

describe.each(pages)('%s', (page) => {
  test('links to files that are there', () => {
    const links = [...read(page).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target)
    expect(links.filter((target) => !existsSync(join(dirname(page), target)))).toEqual([])
  })

  test('links to headings that are there', () => {
    const links = [...read(page).matchAll(/\]\(([^)#:]*)#([^)]+)\)/g)].map(
      ([link, target = '', anchor = '']) => ({
        link,
        path: target === '' ? page : join(dirname(page), target),
        anchor,
      }),
    )
    const dead = links.filter(({ path, anchor }) => path.endsWith('.md') && !anchorsOf(path).has(anchor))
    expect(dead.map(({ link }) => link)).toEqual([])
  })

  test('names files and npm scripts that are there', () => {
    const text = read(page)
    const scripts = [...text.matchAll(/npm run ([a-z]+)/g)].map(([, name = '']) => name)
    expect(scripts.filter((name) => !(name in packageJson.scripts))).toEqual([])
    const files = [
      ...text.matchAll(/`((?:src|test|docs|packaging|manifests|bench|proto|tools|examples)\/[\w./-]+)`/g),
    ]
    const missing = files.map(([, path = '']) => path).filter((path) => !existsSync(path))
    // A suite may have no test yet; then git has no directory for it.
    expect(missing.filter((path) => !suites.has(path))).toEqual([])
  })
})

/** Names of TypeScript and shell files in the comments of a source text. */
function filesInComments(text: string): readonly string[] {
  const comments = text.match(/^\s*(?:\*|\/\*|\/\/).*$|\s\/\/ .*$/gm) ?? []
  return comments.flatMap((comment) =>
    [...comment.matchAll(/(?<![\w./-])((?:\.{1,2}\/)*[\w/-]+(?:\.[a-z]+)?\.(?:ts|sh))\b/g)].map(
      ([, name = '']) => name,
    ),
  )
}

test('comments name files that are there, other ones than their own', () => {
  const directories = ['src', 'test', 'bench', 'tools', 'proto', 'packaging', 'examples']
  const files = directories.flatMap((directory) =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:ts|sh)$/.test(entry.name))
      .map(({ parentPath, name }) => join(parentPath, name)),
  )
  const known = new Set([...files, 'install.sh'])
  const isThere = (name: string, from: string): boolean => {
    if (name === basename(from) && from.startsWith('src/')) return false
    if (name.startsWith('.')) return known.has(join(dirname(from), name))
    return [...known].some((file) => file === name || file.endsWith(`/${name}`))
  }
  const missing = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      filesInComments(read(file))
        .filter((name) => !isThere(name, file))
        .map((name) => `${file}: ${name}`),
    )
  expect(missing).toEqual([])
})

test('each workflow names the commits of the actions that it uses, and says which permissions it needs', () => {
  const workflows = readdirSync('.github/workflows').map((name) => read(`.github/workflows/${name}`))
  expect(workflows.filter((text) => !/^permissions:\n  contents: read$/m.test(text))).toEqual([])
  const uses = workflows.flatMap((text) => Array.from(text.matchAll(/\buses: (.*)/g), ([, use = '']) => use))
  expect(uses).not.toEqual([])
  expect(uses.filter((use) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(use))).toEqual([])
})

test('the README says all that it says in at most 900 words', () => {
  expect(read('README.md').trim().split(/\s+/u).length).toBeLessThanOrEqual(900)
})

test('what people wrote in README, docs and CHANGELOG has at most 25,000 words', () => {
  const isGenerated = (page: string): boolean =>
    /\/(?:CONFORMANCE|ERRORS|OPTIONS|SUPPORT|VALIDATION|README)\.md$|^docs\/notes\//.test(page)
  const text = pages.filter((page) => !isGenerated(page)).map((page) => read(page))
  expect(text.join(' ').trim().split(/\s+/u).length).toBeLessThanOrEqual(25_000)
})

test('the README opens with the two commands', () => {
  const [opening = ''] = read('README.md').split('\n## ')
  expect(opening).toContain('sudo ./install.sh')
  expect(opening).toContain('sudo ./test/run.sh')
})

test.each(['docs/GUIDE.md', 'docs/FAQ.md', 'README.md'])(
  'the manifests in %s have no problem',
  async (page) => {
    const blocks = Array.from(read(page).matchAll(/^```yaml\n(.*?)^```$/gms), ([, text = '']) => text)
    const decoded = await Promise.all(blocks.map((text) => decodeDocuments(text, { path: page })))
    expect(decoded.flatMap(({ documents }) => documents).length).toBeGreaterThan(0)
    expect(decoded.flatMap(({ problems }) => problems)).toEqual([])
  },
)

/**
 * Blocks of commands of other pages than docs/GUIDE.md, whose blocks test/e2e/guide.test.ts runs: by their first line, the test
 * that runs the block or does the same.
 */
const commandBlocks: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': {
    'sudo ./install.sh': 'test/e2e/install.test.ts',
    '$ curl http://127.0.0.1:8080/': 'test/e2e/guide.test.ts',
    '$ sudo apt install ./podd_VERSION_amd64.deb': 'test/vm/packages.ts',
    '$ sudo podd apply -f second.yaml --wait': 'test/e2e/guide.test.ts',
  },
  'CONTRIBUTING.md': {
    // It is how the machine that runs the tests came to its checkout.
    'git clone … podd && cd podd': 'test/check.sh',
    // A rig starts each podd with these flags, in directories of its own.
    'sudo npx podd run --root-dir /tmp/p/root --run-dir /tmp/p/run --pod-manifest-path /tmp/p/pods --cgroup-root /try':
      'test/support/podd-rig.ts',
  },
  'docs/SOURCES.md': {
    // Those here ask for a password on a terminal, and lead to another host.
    'minisign -G': 'test/e2e/trust.test.ts',
  },
}

test('each block of commands is run by a test', () => {
  const found = pages
    .filter((page) => page !== 'docs/GUIDE.md')
    .flatMap((page) => {
      const blocks = [...read(page).matchAll(/^```(?:sh|console|bash|shell)\n(.*)$/gm)]
      return blocks.map(([, first = '']) => `${page}: ${first.split(/ {2,}[#(]/)[0]?.trim()}`)
    })
  const expected = Object.entries(commandBlocks).flatMap(([page, blocks]) =>
    Object.keys(blocks).map((first) => `${page}: ${first}`),
  )
  expect(found.toSorted()).toEqual(expected.toSorted())
  const proofs = Object.values(commandBlocks).flatMap((blocks) => Object.values(blocks))
  expect(proofs.filter((path) => !existsSync(path))).toEqual([])
})

/** Calls of podd that a page shows, in its text or in blocks, without `podd` and what a shell makes of the rest. */
function callsIn(page: string): readonly string[] {
  const text = read(page)
  const inline = Array.from(text.matchAll(/`podd ((?:[^`\n]|\n(?!\n))+)`/g), ([, call = '']) => call)
  const blocks = Array.from(text.matchAll(/^```(?:sh|console)\n(.*?)^```$/gms), ([, lines = '']) => lines)
  const typed = Array.from(
    blocks.join('').matchAll(/^(?:\$ )?(?:sudo )?podd (.+)$/gm),
    ([, call = '']) => call,
  )
  return [...inline, ...typed].map(
    (call) => call.replaceAll(/\s+/g, ' ').split(/ (?:[|>&]|2>|#|--(?= ))/)[0] ?? '',
  )
}

/** What is wrong with a call's verb or flags; undefined where nothing is. */
async function faultOf(call: string): Promise<string | undefined> {
  const [word = '', ...words] = call.split(' ')
  if (word === 'VERB' || word.startsWith('-')) return undefined
  const entry = verbs.find(({ name, aliases = [] }) => name === word || aliases.includes(word))
  if (entry === undefined) return `podd ${call}: no such verb`
  const verb = await entry.load()
  const action = verb.actions?.find(({ name }) => name === words[0])?.verb
  const known = [...globalFlags, ...verb.flags, ...(action?.flags ?? [])]
  const used = words.flatMap(
    (each) => /^-(?:-([a-z][a-z-]*)|([A-Za-z])\b)/.exec(each.replace(/^\[/, ''))?.slice(1, 3) ?? [],
  )
  const unknown = used.filter(
    (flag) => flag !== undefined && !known.some(({ name, short }) => flag === name || flag === short),
  )
  return unknown.length === 0 ? undefined : `podd ${call}: no flag ${unknown.join(', ')}`
}

test('calls of podd in pages are found, and what is wrong with them', async () => {
  expect(pages.flatMap((page) => callsIn(page)).length).toBeGreaterThan(150)
  expect(await faultOf('gett pods')).toBe('podd gett pods: no such verb')
  expect(await faultOf('get pods --wid')).toBe('podd get pods --wid: no flag wid')
})

test.each(pages)('%s shows calls of podd whose verbs and flags there are', async (page) => {
  const faults = await Promise.all(callsIn(page).map((call) => faultOf(call)))
  expect(faults.filter((fault) => fault !== undefined)).toEqual([])
})

describe('the example manifests', () => {
  test.each(manifests)('%s is a valid pod without warnings', async (path) => {
    const { documents, problems } = await decodeDocuments(read(path), { path })
    expect(problems).toEqual([])
    expect(documents).toHaveLength(1)
  })

  test('use the image that install.sh makes', async () => {
    const [, image] = /imageName = '([^']+)'/.exec(read('packaging/busybox-image.ts')) ?? []
    const decoded = await Promise.all(manifests.map((path) => decodeDocuments(read(path), { path })))
    const used = decoded.flatMap(({ documents }) =>
      documents
        .filter((document) => isPodDocument(document))
        .flatMap(({ pod }) => pod.spec.containers.map((container) => container.image)),
    )
    expect(new Set(used)).toEqual(new Set([image]))
  })
})

test('docs/SECURITY-MODEL.md names settings that there are', () => {
  const fields = listOptions().map(([, { field }]) => field)
  const named = Array.from(
    read('docs/SECURITY-MODEL.md').matchAll(/`(podSecurity\.[A-Za-z.]+)/g),
    ([, name = '']) => name,
  )
  expect(new Set(named).size).toBeGreaterThan(5)
  expect(named.filter((name) => !fields.some((field) => field.startsWith(name)))).toEqual([])
})
