import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import {
  createSystemdCaller,
  decodeBusReply,
  encodeBusCall,
  readHostStopping,
  SystemdError,
} from '../../../src/host/cgroups/systemd-bus.ts'
import type { BusArgument, CallSystemd } from '../../../src/host/cgroups/systemd-bus.ts'
import { SystemdPodCgroups } from '../../../src/host/cgroups/systemd.ts'
import { FakeSystemd as FakeSystemdSocket } from '../../support/fake-systemd.ts'
import type { PodCgroupResources } from '../../../src/translate/resources.ts'

/* Bytes that systemd 252 took and gave. */
const startCall =
  'bAEAAYgAAAABAAAAtgAAAAEBbwAZAAAAL29yZy9mcmVlZGVza3RvcC9zeXN0ZW1kMQAAAAAAAAACAXMAIAAAAG9yZy5mcmVlZGVza3RvcC5zeXN0ZW1kMS5NYW5hZ2VyAAAAAAAAAAADAXMAEgAAAFN0YXJ0VHJhbnNpZW50VW5pdAAAAAAAAAYBcwAYAAAAb3JnLmZyZWVkZXNrdG9wLnN5c3RlbWQxAAAAAAAAAAAIAWcAEHNzYShzdilhKHNhKHN2KSkAAAANAAAAcG9kZGNhcC5zbGljZQAAAAcAAAByZXBsYWNlAFwAAAAAAAAACwAAAERlc2NyaXB0aW9uAAFzAAABAAAAeAAAAAAAAAAJAAAAQ1BVV2VpZ2h0AAF0AAAAAAAAAAAKAAAAAAAAAA0AAABDUFVBY2NvdW50aW5nAAFiAAAAAAEAAAAAAAAA'
const jobSignal =
  'bAQBAT4AAAACAAAAmQAAAAEBbwAZAAAAL29yZy9mcmVlZGVza3RvcC9zeXN0ZW1kMQAAAAAAAAACAXMAIAAAAG9yZy5mcmVlZGVza3RvcC5zeXN0ZW1kMS5NYW5hZ2VyAAAAAAAAAAADAXMABgAAAEpvYk5ldwAABwFzABgAAABvcmcuZnJlZWRlc2t0b3Auc3lzdGVtZDEAAAAAAAAAAAgBZwADdW9zAAAAAAAAAABjAgAAIQAAAC9vcmcvZnJlZWRlc2t0b3Avc3lzdGVtZDEvam9iLzYxMQAAAA0AAABwb2RkY2FwLnNsaWNlAA=='
const methodReturn =
  'bAIBASYAAAADAAAANwAAAAUBdQABAAAABwFzABgAAABvcmcuZnJlZWRlc2t0b3Auc3lzdGVtZDEAAAAAAAAAAAgBZwABbwAAIQAAAC9vcmcvZnJlZWRlc2t0b3Avc3lzdGVtZDEvam9iLzYxMQA='

const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64')

/** An error reply to call 1, put together by the specification. */
function errorReply(name: string, message: string): Buffer {
  const pad = (buffer: Buffer): Buffer => Buffer.concat([buffer, Buffer.alloc((8 - (buffer.length % 8)) % 8)])
  const text = (value: string): Buffer => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(value.length)
    return Buffer.concat([length, Buffer.from(`${value}\0`)])
  }
  const fields = Buffer.concat([
    pad(Buffer.concat([Buffer.from('\u0005\u0001u\0'), Buffer.from([1, 0, 0, 0])])),
    pad(Buffer.concat([Buffer.from('\u0004\u0001s\0'), text(name)])),
    Buffer.from('\u0008\u0001g\0\u0001s\0'),
  ])
  const body = text(message)
  const head = Buffer.alloc(16)
  head.write('l\u0003\0\u0001')
  head.writeUInt32LE(body.length, 4)
  head.writeUInt32LE(9, 8)
  head.writeUInt32LE(fields.length, 12)
  return Buffer.concat([pad(Buffer.concat([head, fields])), body])
}

describe('the D-Bus wire', () => {
  it('carries a call as systemd takes it', () => {
    const call = encodeBusCall(
      {
        destination: 'org.freedesktop.systemd1',
        path: '/org/freedesktop/systemd1',
        interface: 'org.freedesktop.systemd1.Manager',
        member: 'StartTransientUnit',
        arguments: [
          { type: 's', value: 'poddcap.slice' },
          { type: 's', value: 'replace' },
          {
            type: 'a(sv)',
            value: [
              { name: 'Description', type: 's', value: 'x' },
              { name: 'CPUWeight', type: 't', value: 10n },
              { name: 'CPUAccounting', type: 'b', value: true },
            ],
          },
          { type: 'a(sa(sv))' },
        ],
      },
      1,
    )
    expect(call.toString('base64')).toBe(startCall)
  })

  it('tells replies from signals, and waits for the rest of either', () => {
    const signal = bytes(jobSignal)
    expect(decodeBusReply(signal)).toMatchObject({ serial: undefined, bytes: signal.length })
    const answer = bytes(methodReturn)
    expect(decodeBusReply(answer)).toEqual({
      serial: 1,
      errorName: undefined,
      text: '',
      bytes: answer.length,
    })
    for (let length = 0; length < answer.length; length += 1) {
      expect(decodeBusReply(answer.subarray(0, length))).toBeUndefined()
    }
  })

  it('tells errors', () => {
    expect(decodeBusReply(errorReply('org.example.No', 'not today'))).toMatchObject({
      serial: 1,
      errorName: 'org.example.No',
      text: 'not today',
    })
  })
})

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-systemd-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

describe('calling systemd', () => {
  let server: Server | undefined

  afterEach(async () => {
    const closing = server
    server = undefined
    if (closing !== undefined) await new Promise((resolve) => closing.close(resolve))
  })

  /** Answers the login, then calls `onCall` with what came after it. */
  async function serve(login: string, onCall: (socket: Socket, call: Buffer) => void): Promise<CallSystemd> {
    const path = join(directory, 'private')
    const listening = createServer((socket) => {
      let loggedIn = false
      socket.on('error', () => undefined)
      socket.on('data', (data: Buffer) => {
        if (loggedIn) {
          onCall(socket, data)
          return
        }
        loggedIn = true
        expect(data.toString()).toMatch(/^\0AUTH EXTERNAL [0-9a-f]+\r\nBEGIN\r\n$/)
        socket.write(login)
      })
    })
    server = listening
    await new Promise<void>((resolve) => listening.listen(path, resolve))
    return createSystemdCaller(systemClock, path)
  }

  it('passes over signals, in pieces too', async () => {
    const seen: Buffer[] = []
    const call = await serve('OK 00112233\r\n', (socket, data) => {
      seen.push(data)
      const answer = Buffer.concat([bytes(jobSignal), bytes(methodReturn)])
      socket.write(answer.subarray(0, 50))
      setTimeout(() => socket.write(answer.subarray(50)), 5)
    })
    await call('StopUnit', { type: 's', value: 'a.slice' })
    expect(seen[0]?.includes('StopUnit')).toBe(true)
  })

  it('throws what systemd refuses', async () => {
    const call = await serve('OK 00112233\r\n', (socket) => {
      socket.write(errorReply('org.freedesktop.systemd1.NoSuchUnit', 'Unit a.slice not loaded.'))
    })
    const error: unknown = await call('StopUnit').catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(SystemdError)
    expect(error).toMatchObject({
      busName: 'org.freedesktop.systemd1.NoSuchUnit',
      message: 'systemd refused StopUnit: Unit a.slice not loaded.',
    })
  })

  it.each([
    ['stopping', 'start', true],
    // Its boot has not finished.
    ['starting', 'start', true],
    ['starting', undefined, false],
    ['running', undefined, false],
    ['degraded', undefined, false],
    // It was reached before a soft-reboot, and what starts now conflicts with it.
    ['starting', 'stop', false],
  ] as const)(
    'tells of a systemd that is %s, with the job %s of shutdown.target, whether the host is going down',
    async (state, shutdownJob, isStopping) => {
      const path = join(directory, 'private')
      const systemd = new FakeSystemdSocket(path)
      systemd.state = state
      systemd.shutdownJob = shutdownJob
      try {
        expect(await readHostStopping(systemClock, path)).toBe(isStopping)
      } finally {
        await systemd.close()
      }
    },
  )

  it.each([
    ['REJECTED EXTERNAL\r\n', 'refused to log podd in'],
    ['', 'closed the connection'],
  ])('tells of a login answered with %j', async (login, expected) => {
    const call = await serve(login, () => undefined)
    if (login === '') server?.on('connection', (socket) => socket.end())
    await expect(call('StopUnit')).rejects.toThrow(expected)
  })

  it('tells where systemd doesn’t run', async () => {
    await expect(createSystemdCaller(systemClock, join(directory, 'none'))('StopUnit')).rejects.toMatchObject(
      {
        code: 'CGROUP',
        hint: 'systemd does not run here: set cgroupDriver to cgroupfs.',
      },
    )
  })
})

/** A systemd that makes and removes directories, and keeps what it was told. */
class FakeSystemd {
  readonly calls: string[] = []
  /** It says that it has stopped a unit before it has. */
  isSlow = false
  readonly #units = new Set<string>()
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  readonly call: CallSystemd = async (member, ...args) => {
    const [first] = args
    const unit = first?.type === 's' ? first.value : ''
    this.calls.push(`${member} ${unit} ${propertiesOf(args)}`.trim())
    if (member === 'StartTransientUnit') {
      if (this.#units.has(unit)) throw new SystemdError(member, 'org.freedesktop.systemd1.UnitExists', '')
      this.#units.add(unit)
      mkdirSync(this.#path(unit), { recursive: true })
    }
    if (member === 'StopUnit') {
      if (!this.#units.delete(unit)) throw new SystemdError(member, 'org.freedesktop.systemd1.NoSuchUnit', '')
      const remove = (): void => rmSync(this.#path(unit), { recursive: true, force: true })
      if (this.isSlow) setTimeout(remove, 20)
      else remove()
    }
  }

  #path(unit: string): string {
    const parts = unit.replace('.slice', '').split('-')
    return join(this.#directory, ...parts.map((_, index) => `${parts.slice(0, index + 1).join('-')}.slice`))
  }
}

/** `CPUWeight=10 TasksMax=…`, without what every slice has. */
function propertiesOf(args: readonly BusArgument[]): string {
  return args
    .flatMap((argument) => (argument.type === 'a(sv)' ? argument.value : []))
    .filter(
      ({ name }) => !name.endsWith('Accounting') && name !== 'Description' && name !== 'DefaultDependencies',
    )
    .map(({ name, value }) => `${name}=${value}`)
    .join(' ')
}

describe('the systemd driver', () => {
  const uid = 'aaaa-1111'
  const limited: PodCgroupResources = {
    cpuShares: 1024,
    cpuQuotaUs: 33_333,
    cpuPeriodUs: 100_000,
    memoryLimitBytes: 1 << 20,
    pidsLimit: 100,
    hugepageLimits: [],
  }
  const infinity = '18446744073709551615'

  function setUp(version: 1 | 2, root = '/') {
    const systemd = new FakeSystemd(directory)
    const system = { version, hierarchies: [{ path: directory, controllers: [] }] }
    return { systemd, cgroups: new SystemdPodCgroups({ system, root, clock: systemClock }, systemd.call) }
  }

  it('makes the levels as slices, and sets those that are there', async () => {
    const { systemd, cgroups } = setUp(2)
    await cgroups.ensureQosTree({ kubepods: 2048, burstable: 512 })
    await cgroups.ensureQosTree({ kubepods: 2048, burstable: 1024 })
    expect(systemd.calls).toEqual([
      'StartTransientUnit kubepods.slice CPUWeight=79',
      'StartTransientUnit kubepods-burstable.slice CPUWeight=20',
      'StartTransientUnit kubepods-besteffort.slice CPUWeight=1',
      'StartTransientUnit kubepods.slice CPUWeight=79',
      'SetUnitProperties kubepods.slice CPUWeight=79',
      'StartTransientUnit kubepods-burstable.slice CPUWeight=39',
      'SetUnitProperties kubepods-burstable.slice CPUWeight=39',
      'StartTransientUnit kubepods-besteffort.slice CPUWeight=1',
      'SetUnitProperties kubepods-besteffort.slice CPUWeight=1',
    ])
  })

  it.each([
    [2, limited, 'CPUWeight=39 CPUQuotaPerSecUSec=340000 MemoryMax=1048576 TasksMax=100'],
    [
      2,
      { ...limited, cpuQuotaUs: 10_000, cpuPeriodUs: 20_000 },
      'CPUWeight=39 CPUQuotaPerSecUSec=500000 CPUQuotaPeriodUSec=20000 MemoryMax=1048576 TasksMax=100',
    ],
    [1, limited, 'CPUShares=1024 CPUQuotaPerSecUSec=340000 MemoryLimit=1048576 TasksMax=100'],
    [
      2,
      { ...limited, cpuQuotaUs: undefined, memoryLimitBytes: undefined, pidsLimit: undefined },
      `CPUWeight=39 CPUQuotaPerSecUSec=${infinity} MemoryMax=${infinity} TasksMax=${infinity}`,
    ],
  ] as const)('of version %d sets %j as %s', async (version, resources, expected) => {
    const { systemd, cgroups } = setUp(version)
    await cgroups.ensurePod({ uid, qosClass: 'Burstable' }, resources)
    expect(systemd.calls).toEqual([`StartTransientUnit kubepods-burstable-podaaaa_1111.slice ${expected}`])
  })

  it('removes a pod, and then the levels with a root of its own', async () => {
    const { systemd, cgroups } = setUp(2, '/podd-test')
    await cgroups.ensureQosTree({ kubepods: 2048, burstable: 512 })
    await cgroups.ensurePod({ uid, qosClass: 'BestEffort' }, limited)
    expect(cgroups.listPods()).toEqual([{ uid, qosClass: 'BestEffort' }])
    expect(cgroups.parentOf({ uid, qosClass: 'BestEffort' })).toContain(
      '/podd_test-kubepods-besteffort-podaaaa_1111.slice',
    )
    await cgroups.removeQosTree()
    expect(systemd.calls.filter((call) => call.startsWith('Stop'))).toEqual([])
    expect(await cgroups.removePod(uid)).toEqual([])
    expect(cgroups.listPods()).toEqual([])
    expect(await cgroups.removePod(uid)).toEqual([])
    expect(await cgroups.removeQosTree()).toEqual([])
    expect(systemd.calls.filter((call) => call.startsWith('Stop'))).toEqual([
      'StopUnit podd_test-kubepods-besteffort-podaaaa_1111.slice',
      'StopUnit podd_test-kubepods-besteffort.slice',
      'StopUnit podd_test-kubepods-burstable.slice',
      'StopUnit podd_test-kubepods.slice',
      'StopUnit podd_test.slice',
    ])
    expect(existsSync(join(directory, 'podd_test.slice'))).toBe(false)
  })

  it('leaves nothing of a root of its own where systemd takes its time', async () => {
    const { systemd, cgroups } = setUp(2, '/podd-test')
    await cgroups.ensureQosTree({ kubepods: 2048, burstable: 512 })
    systemd.isSlow = true
    expect(await cgroups.removeQosTree()).toEqual([])
    expect(systemd.calls.at(-1)).toBe('StopUnit podd_test.slice')
    await expect.poll(() => existsSync(join(directory, 'podd_test.slice'))).toBe(false)
  })
})
