import { describe, expect, it } from 'vitest'
import { normalSysctl, sysctlNamespace, sysctlValueProblem } from '../../../src/pod/values/kernel-names.ts'

describe('sysctls', () => {
  it.each([
    ['net.core.somaxconn', 'Net'],
    ['kernel.sem', 'IPC'],
    ['kernel.shmmax', 'IPC'],
    ['kernel.msgmax', 'IPC'],
    ['fs.mqueue.msg_max', 'IPC'],
    ['kernel.semaphore', undefined],
    ['vm.swappiness', undefined],
  ])('%s is of the namespace %s', (name, namespace) => {
    expect(sysctlNamespace(name)).toBe(namespace)
  })

  it.each([
    ['net.ipv4.tcp_syncookies', 'net.ipv4.tcp_syncookies'],
    ['net/ipv4/tcp_syncookies', 'net.ipv4.tcp_syncookies'],
    ['net/ipv4/conf/eth0.1/forwarding', 'net.ipv4.conf.eth0/1.forwarding'],
    ['net.ipv4.conf.eth0/1.forwarding', 'net.ipv4.conf.eth0/1.forwarding'],
    ['plain', 'plain'],
  ])('%s is normally written as %s', (name, normal) => {
    expect(normalSysctl(name)).toBe(normal)
  })

  it.each([
    ['kernel.shm_rmid_forced', ['', ' ', '0', '1'], ['2', '-1', '1 1', 'x', '0.5']],
    ['net.ipv4.tcp_fin_timeout', ['-2147483648', '2147483647'], ['-2147483649', '2147483648']],
    ['net.ipv4.tcp_keepalive_probes', ['0', '255'], ['256']],
    [
      'net.ipv4.ip_local_port_range',
      ['1 65535', '8000 8000', '8000'],
      ['0 8000', '8001 8000', '1 65536', '1 2 3'],
    ],
    ['net.ipv4.ping_group_range', ['0 2147483647', '1 0'], ['-1 0']],
    ['net.ipv4.tcp_rmem', ['1 2 3', '4096'], ['0 1 2', '1 2 3 4', '1 x 3']],
    [
      'net.ipv4.ip_local_reserved_ports',
      ['8080', '8080,9000-9100', '7-7', ' 1 , 2 ', '65535'],
      ['9100-9000', '65536', '1-65536', '8080;9000', '8080,x', 'x,8080'],
    ],
    ['net.core.somaxconn', ['anything'], []],
  ])('%s takes %j and refuses %j', (name, taken, refused) => {
    expect(taken.filter((value) => sysctlValueProblem(name, value) !== undefined)).toEqual([])
    expect(refused.filter((value) => sysctlValueProblem(name, value) === undefined)).toEqual([])
  })

  it('say what they take', () => {
    expect(sysctlValueProblem('kernel/shm_rmid_forced', '2')).toBe('takes a whole number between 0 and 1')
    expect(sysctlValueProblem('net.ipv4.ip_local_port_range', '2 1')).toBe(
      'takes 2 whole numbers between 1 and 65535, the second no less than the first',
    )
    expect(sysctlValueProblem('net.ipv4.ping_group_range', '-1 0')).toBe(
      'takes 2 whole numbers between 0 and 2147483647',
    )
  })
})
