import { defineConfig } from 'oxlint'

/**
 * The house, from the top floor to the bottom one. Imports point only down; rooms on one floor don't see each other.
 * docs/ARCHITECTURE.md tells why, and test/unit/floors.test.ts plants violations to prove that this holds.
 */
const floors: readonly (readonly string[])[] = [
  ['cli', 'daemon', 'page'],
  ['server', 'control'],
  ['sources', 'runtime', 'images', 'probes', 'volumes', 'logs'],
  ['host', 'store'],
  ['translate', 'decide'],
  ['api', 'config'],
  ['cri-types', 'pod', 'grpc'],
  ['base'],
]

/** The floors within a room that has rooms of its own, by the same rule; `.` are the files that lie in the room itself. */
const innerFloors: Readonly<Record<string, readonly (readonly string[])[]>> = {
  cli: [['.'], ['verbs'], ['local'], ['output'], ['arguments'], ['client']],
  control: [['.'], ['desired', 'node'], ['pod'], ['images'], ['serving'], ['runtime']],
  decide: [
    ['services', 'sources', 'status', 'updates', 'workloads', 'writing'],
    ['admission', 'doctor', 'images', 'plan'],
    ['node'],
  ],
  sources: [['directory', 'http', 'written'], ['.']],
  runtime: [['.'], ['network'], ['containerd']],
  server: [
    ['.'],
    ['http', 'metrics', 'streams', 'writing'],
    ['routes'],
    ['resources'],
    ['access'],
    ['requests'],
  ],
  host: [['facts'], ['cgroups'], ['.']],
  pod: [['decode'], ['state'], ['objects'], ['validation'], ['schema'], ['values']],
}

interface ImportBan {
  regex: string
  message: string
}
type ImportRule = ['error', { patterns: ImportBan[] }]

const clockMessage = 'Time comes from the injected Clock (src/base/clock.ts).'
const timerBan: ImportBan = { regex: '^(node:)?timers(/promises)?$', message: clockMessage }

/** What lies on the floors above a room, and beside it. */
function forbiddenFor(room: string, house: readonly (readonly string[])[]): readonly string[] {
  const index = house.findIndex((rooms) => rooms.includes(room))
  return house.slice(0, index + 1).flatMap((rooms) => rooms.filter((other) => other !== room))
}

/** Import paths are relative: `out` leads from a file to `src`, `within` to the room that the file's own room lies in. */
function importRule(room: string, inner: string): ImportRule {
  const depth = inner === '.' ? 0 : inner.split('/').length
  const out = '\\.\\./'.repeat(depth + 1)
  const within = inner === '.' ? '\\./' : '\\.\\./'.repeat(depth)
  const above = ['main', ...forbiddenFor(room, floors)].join('|')
  const message = `src/${room} may import only from floors below it (docs/ARCHITECTURE.md).`
  const bans = [
    { regex: `^${out}(${above})(/|\\.ts$)`, message },
    { regex: `^${out}${room}/`, message: 'Within a room, a path goes no further up than that room.' },
  ]
  const innerHouse = innerFloors[room] ?? []
  const innerAbove = forbiddenFor(inner, innerHouse)
  const directories = innerAbove.filter((other) => other !== '.').join('|')
  const innerMessage = `src/${room}/${inner} may import only from the floors of src/${room} below it (docs/ARCHITECTURE.md).`
  if (directories !== '') bans.push({ regex: `^${within}(${directories})/`, message: innerMessage })
  if (depth > 1)
    bans.push({ regex: '^\\.\\./[^.]', message: `src/${room}/${inner} may not import what lies beside it.` })
  if (innerAbove.includes('.')) bans.push({ regex: `^${within}[^/]+\\.ts$`, message: innerMessage })
  return ['error', { patterns: room === 'base' ? bans : [...bans, timerBan] }]
}

const floorOverrides = floors.flat().flatMap((room) =>
  [...new Set(['.', ...(innerFloors[room] ?? []).flat()])].map((inner) => ({
    files: [inner === '.' ? `src/${room}/*.ts` : `src/${room}/${inner}/*.ts`],
    rules: { 'no-restricted-imports': importRule(room, inner) },
  })),
)

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'promise', 'node', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  ignorePatterns: ['dist/**', 'node_modules/**', 'src/cri-types/**'],
  rules: {
    'no-await-in-loop': 'off',
    'no-underscore-dangle': 'off',
    'no-shadow': 'off',
    'no-restricted-globals': 'off',
    // Types too: files that know each other are one file.
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'import/no-default-export': 'error',
    'import/no-unassigned-import': 'off',
    'import/no-named-as-default-member': 'off',
    'import/no-named-as-default': 'off',
    'promise/always-return': 'off',
    'promise/no-multiple-resolved': 'off',
    'unicorn/consistent-function-scoping': 'off',
    'unicorn/no-array-sort': 'off',
    'unicorn/no-array-reverse': 'off',
    'unicorn/prefer-set-has': 'off',
    'unicorn/prefer-add-event-listener': 'off',
    'unicorn/no-useless-undefined': 'off',
    'vitest/require-mock-type-parameters': 'off',
    'vitest/expect-expect': 'error',
    'vitest/no-disabled-tests': 'error',
    'vitest/no-focused-tests': 'error',
    'vitest/valid-title': 'off',
    'vitest/no-conditional-tests': 'off',
    'vitest/no-standalone-expect': 'off',
    'vitest/require-to-throw-message': 'off',
    'vitest/valid-describe-callback': 'off',
    'vitest/warn-todo': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'typescript/no-unsafe-type-assertion': 'error',
    'typescript/consistent-return': 'off',
    'typescript/no-unnecessary-condition': 'off',
    'typescript/strict-boolean-expressions': 'off',
  },
  overrides: [
    ...floorOverrides,
    {
      files: ['src/**/*.ts'],
      excludeFiles: ['src/base/**', 'src/page/**'],
      rules: {
        'no-restricted-globals': [
          'error',
          ...['setTimeout', 'setInterval', 'setImmediate'].map((name) => ({
            name,
            message: clockMessage,
          })),
        ],
        'no-restricted-properties': [
          'error',
          { object: 'Date', property: 'now', message: clockMessage },
          { object: 'performance', property: 'now', message: clockMessage },
          { object: 'process', property: 'hrtime', message: clockMessage },
          { object: 'Math', property: 'random', message: 'Randomness comes from src/base/random.ts.' },
        ],
      },
    },
    // What is configured by its default export, and a reporter of vitest.
    { files: ['*.config.ts', 'test/lib/unhandled-errors.ts'], rules: { 'import/no-default-export': 'off' } },
    {
      files: ['test/**/*.ts', 'bench/**/*.ts'],
      rules: { 'typescript/no-unsafe-type-assertion': 'off', 'typescript/no-non-null-assertion': 'off' },
    },
  ],
})
