import { describe, expect, it } from 'vitest'
import { reservedResources as resources, runtimeClasses, textList } from '../../../src/config/list-types.ts'
import { readConfigFile } from '../../../src/config/read-config-file.ts'

const words = textList('WORD', (item) => (/^[a-z]+$/u.test(item) ? undefined : 'must be lower case'))

describe('lists of texts', () => {
  it.each([
    ['a,b', ['a', 'b']],
    ['', []],
  ])('read %j', (text, value) => {
    expect(words.fromText(text)).toEqual({ kind: 'ok', value })
    expect(words.fromFile(value)).toEqual({ kind: 'ok', value })
  })

  it('name the item that is wrong', () => {
    expect(words.fromText('a,B')).toEqual({ kind: 'bad', message: '"B" must be lower case' })
    expect(words.fromFile('a')).toEqual({ kind: 'bad', message: 'must be a list of texts' })
    expect(words.fromFile([['a']])).toEqual({ kind: 'bad', message: 'must be a list of texts' })
  })
})

describe('resources', () => {
  it('are quantities by name', () => {
    expect(resources.fromText('cpu=0.5,memory=1024Mi')).toEqual({
      kind: 'ok',
      value: { cpu: '500m', memory: '1Gi' },
    })
    expect(resources.fromFile({ cpu: 1 })).toEqual({ kind: 'ok', value: { cpu: '1' } })
  })

  it('that podd does not ration are left out, with a warning', () => {
    expect(resources.fromText('cpu=1,ephemeral-storage=1Gi,pid=100')).toEqual({
      kind: 'ok',
      value: { cpu: '1' },
      warnings: [
        'ephemeral-storage has no effect: podd keeps no disk space back from pods',
        'pid has no effect: podd does not count the processes of the host',
      ],
    })
  })

  it.each(['memroy', 'constructor', '__proto__', 'nvidia.com/gpu'])('do not bear the name %s', (name) => {
    expect(resources.fromText(`${name}=1`)).toEqual({
      kind: 'bad',
      message: `must not name "${name}": there are cpu and memory`,
    })
  })

  it.each([['cpu'], ['cpu=-1'], ['memory=lots']])('refuse %j', (text) => {
    expect(resources.fromText(text)).toMatchObject({ kind: 'bad', message: /must be a quantity such as/u })
  })
})

describe('RuntimeClasses of the config', () => {
  it('have a handler and an overhead', () => {
    expect(
      runtimeClasses.fromFile({
        a: { handler: 'runsc', overhead: { memory: '64Mi' } },
        b: { handler: 'runc' },
      }),
    ).toEqual({
      kind: 'ok',
      value: { a: { handler: 'runsc', overhead: { memory: '64Mi' } }, b: { handler: 'runc' } },
    })
  })

  it.each([
    [{ a: {} }, 'a must have a handler'],
    [{ a: { handler: 'x', overhed: {} } }, 'a has the unknown field overhed'],
    [
      { a: { handler: 'x', overhead: { cpu: 'x' } } },
      'a has an overhead that cpu must be a quantity such as 200m or 500Mi',
    ],
    [
      { a: { handler: 'x', overhead: { pid: 1 } } },
      'a has an overhead that must not name "pid": there are cpu and memory',
    ],
    [[], 'must be a mapping of names'],
  ])('%j are refused', (json, message) => {
    expect(runtimeClasses.fromFile(json)).toEqual({ kind: 'bad', message })
  })
})

describe('a warning', () => {
  const head = 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\n'

  it.each([
    [
      'systemReserved: {pid: 1}',
      'systemReserved',
      'pid has no effect: podd does not count the processes of the host',
    ],
    [
      'runtimeClasses: {a: {handler: x, overhead: {ephemeral-storage: 1Gi}}}',
      'runtimeClasses',
      'in the overhead of a, ephemeral-storage has no effect: podd keeps no disk space back from pods',
    ],
  ])('stands at its field: %s', async (line, field, message) => {
    const { problems } = await readConfigFile(`${head}${line}`, 'c')
    expect(problems).toEqual([
      { severity: 'warning', field, message, place: { path: 'c', line: 3, column: 1 } },
    ])
  })
})

describe('a policy in the config file', () => {
  const head = 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\n'

  it('is read for each source', async () => {
    const text = `${head}podSecurity: {url: {level: restricted, allowedHostPorts: [80, 8000-8099]}, file: {allowedCapabilities: [NET_ADMIN]}}`
    const { values, problems } = await readConfigFile(text, 'c')
    expect(problems).toEqual([])
    expect(values).toEqual({
      urlSecurityLevel: 'restricted',
      urlAllowedHostPorts: ['80', '8000-8099'],
      directoryAllowedCapabilities: ['NET_ADMIN'],
    })
  })

  it.each([
    ['podSecurity: {url: {level: open}}', /must be one of privileged, baseline, restricted/u],
    ['podSecurity: {url: {allowedHostPaths: [srv]}}', /"srv" must be an absolute path/u],
    ['podSecurity: {url: {levle: baseline}}', /unknown field/u],
    ['podSecurity: {url: {allowedHostPorts: [9000-80]}}', /"9000-80" must be a port or a range/u],
    ['podSecurity: {url: {allowedHostPorts: [99999]}}', /"99999" must be a port or a range/u],
    ['podSecurity: {url: {allowedHostPorts: [0]}}', /"0" must be a port or a range/u],
    ['podSecurity: {url: {allowedHostPorts: [80-90-100]}}', /"80-90-100" must be a port or a range/u],
    ['allowedUnsafeSysctls: ["vm.*"]', /must be of a namespace that pods have/u],
  ])('%s is an error', async (line, message) => {
    const { problems } = await readConfigFile(`${head}${line}`, 'c')
    expect(problems).toMatchObject([{ severity: 'error', message }])
  })
})
