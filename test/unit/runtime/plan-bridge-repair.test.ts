import { describe, expect, it } from 'vitest'
import { describeRepairs, planBridgeRepair } from '../../../src/runtime/network/pod-bridge.ts'
import type { BridgeState, BridgeWish } from '../../../src/runtime/network/pod-bridge.ts'

const wish: BridgeWish = {
  mac: '02:00:00:00:00:01',
  gateways: ['10.86.0.1/24'],
  ports: ['veth1', 'veth2'],
  hasHostPorts: true,
}
const both: BridgeWish = { ...wish, gateways: ['10.86.0.1/24', 'fd00::1/64'] }
const bridge = { isUp: true, addresses: ['10.86.0.1', 'fe80::1'], routesLocalnet: true }
const whole: BridgeState = {
  bridge,
  masters: new Map([
    ['veth1', 'podd0'],
    ['veth2', 'podd0'],
  ]),
  forwards: { ipv4: true, ipv6: false },
}

describe('planBridgeRepair', () => {
  it.each<[string, BridgeWish, BridgeState, string[]]>([
    ['all is there', wish, whole, []],
    ['no pod is on it', { ...wish, ports: [] }, { ...whole, bridge: undefined }, []],
    ['the ends of all pods are gone', wish, { ...whole, bridge: undefined, masters: new Map() }, []],
    [
      'the bridge is gone',
      wish,
      { ...whole, bridge: undefined, masters: new Map(wish.ports.map((port) => [port, ''] as const)) },
      [
        'make-bridge 02:00:00:00:00:01',
        'raise-bridge',
        'attach veth1',
        'attach veth2',
        'add-address 10.86.0.1/24',
        'route-localnet',
      ],
    ],
    [
      'the bridge is down, which hides its addresses',
      wish,
      { ...whole, bridge: { ...bridge, isUp: false, addresses: undefined } },
      ['raise-bridge', 'add-address 10.86.0.1/24'],
    ],
    [
      'its address is gone',
      both,
      { ...whole, forwards: { ipv4: true, ipv6: true } },
      ['add-address fd00::1/64'],
    ],
    ['its addresses cannot be read', wish, { ...whole, bridge: { ...bridge, addresses: undefined } }, []],
    [
      'one end hangs on another bridge, and one is gone',
      wish,
      { ...whole, masters: new Map([['veth1', 'br0']]) },
      ['attach veth1'],
    ],
    [
      'host ports are not reached over the loopback',
      wish,
      { ...whole, bridge: { ...bridge, routesLocalnet: false } },
      ['route-localnet'],
    ],
    [
      'no pod has host ports',
      { ...wish, hasHostPorts: false },
      { ...whole, bridge: { ...bridge, routesLocalnet: false } },
      [],
    ],
    [
      'nothing is forwarded',
      both,
      {
        ...whole,
        bridge: { ...bridge, addresses: ['10.86.0.1', 'fd00::1'] },
        forwards: { ipv4: false, ipv6: false },
      },
      ['forward ipv4', 'forward ipv6'],
    ],
  ])('where %s', (_, wanted, state, expected) => {
    const repairs = planBridgeRepair('podd0', wanted, state)
    expect(repairs.map(({ kind, ...rest }) => [kind, ...Object.values(rest)].join(' '))).toEqual(expected)
  })
})

describe('describeRepairs', () => {
  it.each<[BridgeState, string]>([
    [whole, ''],
    [{ ...whole, bridge: undefined }, 'bridge podd0 is missing; 2 pods are not attached to podd0'],
    [
      { ...whole, bridge: { ...bridge, isUp: false }, masters: new Map([['veth1', '']]) },
      'bridge podd0 is down; bridge podd0 lacks its address 10.86.0.1/24; 1 pod is not attached to podd0',
    ],
    [
      {
        ...whole,
        bridge: { ...bridge, routesLocalnet: false },
        forwards: { ipv4: false, ipv6: false },
      },
      'host ports are not reachable over 127.0.0.1 (route_localnet of podd0 is 0); the host does not forward IPv4 packets',
    ],
  ])('%#', (state, expected) => {
    expect(describeRepairs('podd0', planBridgeRepair('podd0', wish, state))).toBe(expected)
  })
})
