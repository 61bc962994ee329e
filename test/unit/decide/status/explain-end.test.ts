import { describe, expect, it } from 'vitest'
import { explainEnd, findOomKilled } from '../../../../src/decide/status/derive-container-status.ts'

const facts = {
  container: { exitCode: 255, reason: 'Unknown' },
  message: '',
  sandboxBootId: 'boot-1',
  bootId: 'boot-2',
}
const words = 'The container was running when the host was restarted or lost power'

it.each([
  ['was cut off by a boot', {}, words],
  ['wrote why it ended', { message: 'bye' }, 'bye'],
  ['ended before the boot', { container: { exitCode: 1, reason: 'Error' } }, ''],
  ['ended so by itself', { container: { exitCode: 255, reason: 'Error' } }, ''],
  ['was lost in this boot', { sandboxBootId: 'boot-2' }, ''],
  ['was lost, by a record that does not tell when', { sandboxBootId: undefined }, ''],
])('a container that %s', (_, change, message) => {
  expect(explainEnd({ ...facts, ...change })).toBe(message)
})

describe('the container that was OOM-killed without a word of the runtime', () => {
  const ended = (id: string, exitCode: number, reason = 'Error') => ({ id, exitCode, reason })
  const one = ended('a', 137)

  it.each([
    ['is the one that was killed, of several', [one, ended('b', 1)], 0, 1, 'a'],
    ['is the only one that ended, whatever its exit code', [ended('a', 1)], 0, 1, 'a'],
    ['is none where several were killed', [one, ended('b', 137)], 0, 1, undefined],
    ['is none where the runtime names another', [one, ended('b', 137, 'OOMKilled')], 0, 1, undefined],
    ['is none where the kernel counts no more kills than before', [one], 1, 1, undefined],
    ['is none where kills were not counted before', [one], undefined, 1, undefined],
    ['is none where kills cannot be counted', [one], 0, undefined, undefined],
    ['is none where the cgroup was made anew and counts no kill', [one], 3, 0, undefined],
  ])('%s', (_what, all, before, now, id) => {
    expect(findOomKilled(all, before, now)).toBe(id)
  })
})
