import { describe, expect, it } from 'vitest'
import { readToml } from '../../../src/decide/doctor/read-toml.ts'
import { readHostsFile } from '../../../src/decide/doctor/registry-hosts.ts'

const host = '[host."https://mirror.example"]'

describe('a hosts.toml', () => {
  it('that containerd documents has nothing wrong', () => {
    const text = `# a mirror
server = "https://registry.example"   # the registry itself

[host."https://mirror.example:5000/v2"]
  capabilities = [
    "pull", # here
    "resolve",
  ]
  ca = ["/etc/certs/one.crt", 'two.crt']
  client = [["/etc/certs/a.crt", "/etc/certs/a.key"], ["/etc/certs/b.pem"]]
  skip_verify = false
  override_path = true
  dial_timeout = "3s"
[host."https://mirror.example:5000/v2".header]
  x-custom = ["a", "b"]
  authorization = "Basic"

[host.'http://127.0.0.1:5000']
`
    expect(readHostsFile(text)).toEqual({
      problems: [],
      files: ['/etc/certs/one.crt', 'two.crt', '/etc/certs/a.crt', '/etc/certs/a.key', '/etc/certs/b.pem'],
    })
    expect(readHostsFile('')).toEqual({ problems: [], files: [] })
  })

  it.each([
    ['server = "https://a.io"', 'it has no [host."URL"], without which containerd 1.6 passes over it'],
    [`${host}\ncapabilities = ["pull" "resolve"]`, 'line 2 is not TOML that podd can read'],
    [`${host}\nca = "/x`, 'line 2 is not TOML that podd can read'],
    ['[host."https://a.io"', 'line 1 is not TOML that podd can read'],
    [`server = "a.io"\n${host}`, 'server must be an http or https URL'],
    ['[host."a.io"]', '[host."a.io"] is no http or https URL'],
    [
      `${host}\ncapabilities = ["pull", "fetch"]`,
      'capabilities must be a list of "pull", "resolve" and "push"',
    ],
    [`${host}\nskip_verify = "true"`, 'skip_verify must be true or false'],
    [`${host}\nca_file = "/x"`, 'host.https://mirror.example.ca_file is not known to containerd'],
  ])('%j: %s', (text, problem) => {
    expect(readHostsFile(text).problems).toEqual([problem])
  })
})

describe('reading TOML', () => {
  it('gives tables, keys and values', () => {
    const { tables, lines } = readToml('a.b = 1_000\n["x y".z]\r\nk = [true, [false]]\n"q" = "\\u0041"')
    expect(tables).toEqual([['x y', 'z']])
    expect(lines).toEqual([
      { table: ['a'], key: 'b', value: 1000 },
      { table: ['x y', 'z'], key: 'k', value: [true, [false]] },
      { table: ['x y', 'z'], key: 'q', value: 'A' },
    ])
  })

  it.each(['['.repeat(100_000), `a = ${'['.repeat(100_000)}`, `a = "${'\\'.repeat(100_001)}`])(
    'takes no time for what is no TOML',
    (text) => {
      expect(readToml(text).problem).toBe('line 1 is not TOML that podd can read')
    },
  )
})
