import { expect, it } from 'vitest'
import { settlePulls } from '../../../../src/decide/images/pulled-record.ts'

const digest = `sha256:${'b'.repeat(64)}`
const nginx = {
  id: 'sha256:aa',
  repoTags: ['docker.io/library/nginx:1'],
  repoDigests: [`docker.io/library/nginx@${digest}`],
}

it.each([
  ['a name in its short form', { image: 'nginx:1' }, { imageRef: 'sha256:aa', isBrought: true }],
  ['a digest', { image: `nginx@${digest}` }, { imageRef: 'sha256:aa', isBrought: true }],
  [
    'another image had the name before',
    { image: 'nginx:1', presentRef: 'sha256:cc' },
    { imageRef: 'sha256:aa', isBrought: true },
  ],
  [
    'the same image was there before',
    { image: 'nginx:1', presentRef: 'sha256:aa' },
    { imageRef: 'sha256:aa', isBrought: false },
  ],
  ['no image', { image: 'nginx:2' }, { imageRef: undefined, isBrought: false }],
  [
    'the image before is gone',
    { image: 'nginx:2', presentRef: 'sha256:cc' },
    { imageRef: undefined, isBrought: false },
  ],
])('settles a pull of unknown end: %s', (_name, pull, settled) => {
  expect(settlePulls([pull], [nginx])).toEqual([{ image: pull.image, ...settled }])
})
