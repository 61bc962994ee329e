import { describe, expect, it } from 'vitest'
import { makeExecProcess } from '../../../src/runtime/containerd/exec-process.ts'

const own = {
  terminal: false,
  consoleSize: { height: 1, width: 2 },
  user: { uid: 1000, gid: 1000, additionalGids: [4242] },
  args: ['/server', '--port', '80'],
  env: ['PATH=/bin', 'TERM=dumb', 'COLOUR=blue'],
  cwd: '/srv',
  capabilities: { bounding: ['CAP_CHOWN'] },
  noNewPrivileges: true,
}

function make(process: object, choices: Partial<Parameters<typeof makeExecProcess>[1]> = {}): unknown {
  const spec = JSON.stringify({ ociVersion: '1.1.0', process, root: { path: 'rootfs' } })
  return JSON.parse(makeExecProcess(spec, { command: ['sh'], terminal: false, ...choices }))
}

describe('the process of a command in a container', () => {
  it("is the container's own but for what it runs", () => {
    const { consoleSize: _size, ...rest } = own
    expect(make(own)).toEqual({ ...rest, args: ['sh'], terminal: false })
  })

  it('says what terminal it has', () => {
    expect(make(own, { terminal: true, size: { columns: 120, rows: 40 } })).toMatchObject({
      terminal: true,
      env: ['PATH=/bin', 'COLOUR=blue', 'TERM=xterm'],
      consoleSize: { height: 40, width: 120 },
    })
  })

  it('has no terminal where its container has one', () => {
    expect(make({ ...own, terminal: true })).toMatchObject({ terminal: false, env: own.env })
  })

  it('keeps numbers that JavaScript has no number for, and text that looks like them', () => {
    const limits =
      '"rlimits":[{"type":"RLIMIT_CORE","hard":18446744073709551615,"soft":-9223372036854775808}]'
    const text = String.raw`"env":["ID=18446744073709551615","QUOTED=\"18446744073709551615\""]`
    const process = makeExecProcess(`{"process":{${limits},${text}}}`, { command: ['sh'], terminal: false })
    expect(process).toContain(limits)
    expect(process).toContain(text)
  })

  it('is refused without a process to go by', () => {
    expect(() => makeExecProcess('{}', { command: ['sh'], terminal: false })).toThrow('no process of its own')
  })
})
