import { defineConfig } from 'oxlint'

/**
 * The house, from the top floor to the bottom one. Imports point only down; rooms on one floor
 * don't see each other, except where `alsoSees` says so. docs/ARCHITECTURE.md tells why, and
 * test/unit/floors.test.ts plants a violation to prove that this holds.
 */
const floors: readonly (readonly string[])[] = [
  ['cli', 'daemon'],
  ['server', 'control'],
  ['sources', 'cri', 'containerd', 'images', 'probes', 'volumes', 'logs'],
  ['host', 'store'],
  ['translate', 'decide'],
  ['api', 'config'],
  ['cri-types', 'pod'],
  ['base'],
]

interface ImportBan {
  group: string[]
  message: string
}
type ImportRule = ['error', { patterns: ImportBan[] }]

const clockMessage = 'Time comes from the injected Clock (src/base/clock.ts).'
const timerModules = ['node:timers', 'node:timers/promises', 'timers', 'timers/promises']
const timerBan: ImportBan = { group: timerModules, message: clockMessage }

function importRule(forbidden: readonly string[], message: string, alsoForbidden: ImportBan[]): ImportRule {
  const group = forbidden.flatMap((room) => [`**/${room}/**`, `**/${room}.ts`])
  return ['error', { patterns: [{ group, message }, ...alsoForbidden] }]
}

const floorOverrides = floors.flatMap((rooms, index) =>
  rooms.map((room) => {
    const above = floors.slice(0, index).flat()
    const beside = rooms.filter((other) => other !== room)
    return {
      files: [`src/${room}/**/*.ts`, `src/${room}.ts`],
      rules: {
        'no-restricted-imports': importRule(
          ['main', ...above, ...beside],
          `src/${room} may import only from floors below it (docs/ARCHITECTURE.md).`,
          room === 'base' ? [] : [timerBan],
        ),
      },
    }
  }),
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
      excludeFiles: ['src/base/**'],
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
