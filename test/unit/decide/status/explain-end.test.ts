import { expect, it } from 'vitest'
import { explainEnd } from '../../../../src/decide/status/derive-container-status.ts'

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
