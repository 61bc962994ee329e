import { describe, expect, it } from 'vitest'
import { readHostsFile } from '../../../../src/decide/doctor/registry-hosts.ts'

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
    [`${host}\ncapabilities = ["pull" "resolve"]`, 'line 2 is not valid TOML'],
    [`${host}\nca = "/x`, 'line 2 is not valid TOML'],
    ['[host."https://a.io"', 'line 1 is not valid TOML'],
    [`server = "a.io"\n${host}`, 'server must be an http or https URL'],
    ['[host."a.io"]', '[host."a.io"] is no http or https URL'],
    [
      `${host}\ncapabilities = ["pull", "fetch"]`,
      'capabilities must be a list of "pull", "resolve" and "push"',
    ],
    [`${host}\nca = ["/x", 1]`, 'ca must be the path of a file, or a list of them'],
    [`${host}\nclient = ["/x", 1]`, 'client must be a path, or a list of pairs of a certificate and its key'],
    [
      `${host}\nclient = [["/x", "/y"], ["/z", 1]]`,
      'client must be a path, or a list of pairs of a certificate and its key',
    ],
    [`${host}\nskip_verify = "true"`, 'skip_verify must be true or false'],
    [`${host}\nca_file = "/x"`, 'host.https://mirror.example.ca_file is not known to containerd'],
    [`${host}\n[mirror]\nx = 1`, 'mirror is not known to containerd'],
    [`${host}\nheader = { x = 1 }`, 'the header x must be text'],
    ['host = 1', 'it has no [host."URL"], without which containerd 1.6 passes over it'],
  ])('%j: %s', (text, problem) => {
    expect(readHostsFile(text).problems).toEqual([problem])
  })

  it.each(['['.repeat(100_000), `a = ${'['.repeat(100_000)}`, `a = "${'\\'.repeat(100_001)}`])(
    'that is no TOML takes no time',
    (text) => {
      expect(readHostsFile(text).problems).toEqual(['line 1 is not valid TOML'])
    },
  )
})
