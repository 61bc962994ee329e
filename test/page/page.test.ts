import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { source } from 'axe-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Chromium, chromiumPath } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { PageRig } from '../support/page-rig.ts'
import { containerStatus, eventObject, podObject } from '../support/pod-objects.ts'
import { slowness } from '../support/slowness.ts'

/** Where the screenshots are to be kept. */
const kept = process.env['PODD_PAGE_SCREENSHOTS']

const devices = [
  ['phone', 390, 844, 'light'],
  ['phone', 390, 844, 'dark'],
  ['tablet', 820, 1180, 'light'],
  ['tablet', 820, 1180, 'dark'],
  ['desktop', 1440, 900, 'light'],
  ['desktop', 1440, 900, 'dark'],
] as const

// Skipped where there is no Chromium: it is too large to be installed for the tests alone.
describe.skipIf(chromiumPath === undefined)('the status page in Chromium', () => {
  let rig: PageRig
  let tab: Chromium

  beforeAll(async () => {
    rig = new PageRig(await mkdtemp(join(tmpdir(), 'podd-page-')))
    await rig.fill()
    await rig.listenAt(await freePort())
    tab = await Chromium.start(chromiumPath ?? '')
  })

  afterAll(async () => {
    await tab?.close()
    await rig?.close(0)
    await rm(rig.directory, { recursive: true, force: true })
  })

  beforeEach(() => {
    tab.errors.length = 0
  })

  afterEach(({ task }) => {
    if (task.result?.state === 'fail') console.error(tab.errors)
  })

  async function open(hash = ''): Promise<void> {
    await tab.open(`${rig.url}/ui${hash}`)
  }

  const sees = (selector = 'main') => expect.poll(() => tab.text(selector), { timeout: 10_000 * slowness })

  async function logIn(): Promise<void> {
    await open()
    await sees().toMatch(/Bearer token|web-0/u)
    // The tab keeps its token.
    if ((await tab.text('main')).includes('Bearer token')) {
      await tab.send('Input.insertText', { text: rig.token })
      await tab.press('Enter', 13, '\r')
    }
    await sees().toContain('web-0')
  }

  it('asks for a token, and says of one that it is not known', async () => {
    await open()
    await sees().toContain('Bearer token')
    expect(await axeFindings()).toEqual([])
    expect(tab.errors).toEqual([])
    await tab.send('Input.insertText', { text: 'nonsense' })
    await tab.press('Enter', 13, '\r')
    await sees().toContain('The token is not valid.')
    expect(await tab.evaluate('document.activeElement.id')).toBe('token')
  })

  it('shows pods, usage, events and sources, by keyboard alone, without an error', async () => {
    await logIn()
    await sees('.pods li:first-child').toMatch(/^broken\s+CrashLoopBackOff\s+0\/1 ready\s+12 restarts/u)
    await sees('.pods li:first-child').toMatch(/main: exit code 1\s+line 20 of broken$/u)
    await sees().toContain('BackOff')
    await sees().toContain('/etc/pods')
    await sees('#host').toBe('gateway-7')
    await sees('#connection').toBe('live')
    expect(await tab.evaluate(`document.querySelectorAll('svg.chart path.line[d^=M]').length`)).toBe(2)
    expect(
      await tab.evaluate(`document.querySelectorAll('svg.spark path.line[d^=M]').length`),
    ).toBeGreaterThan(5)
    const tabTo = (text: RegExp) =>
      expect
        .poll(async () => {
          await tab.press('Tab', 9)
          return tab.evaluate('document.activeElement.textContent')
        })
        .toMatch(text)
    await tabTo(/^broken/u)
    await tab.press('Enter', 13, '\r')
    await tabTo(/^Containers, events and log of broken$/u)
    await tab.press('Enter', 13, '\r')
    await sees('h2').toBe('Pod broken')
    await sees('pre').toContain('line 20 of broken')
    expect(await tab.text('pre')).not.toContain('[31m')
    expect(tab.errors).toEqual([])
  })

  it('shows a change of a pod, and a line of its log, within a second', async () => {
    await logIn()
    await tab.evaluate(watchFor('Terminating'))
    const { metadata, ...rest } = podObject({ name: 'web-0' })
    const changedMs = Date.now()
    rig.pods.put({ ...rest, metadata: { ...metadata, deletionTimestamp: new Date().toISOString() } })
    const shownMs = Number(await tab.evaluate('globalThis.seen'))
    expect(shownMs - changedMs).toBeLessThan(1000 * slowness)
    await tab.evaluate(`location.hash = '#pod/default/web-0'`)
    await sees('pre').toContain('line 20 of web-0')
    await tab.evaluate(watchFor('one more'))
    const writtenMs = Date.now()
    await rig.log('web-0', ['one more'])
    expect(Number(await tab.evaluate('globalThis.seen')) - writtenMs).toBeLessThan(1000 * slowness)
    rig.pods.put(podObject({ name: 'web-0' }))
    expect(tab.errors).toEqual([])
  })

  it('keeps a pod open, and the focus on it, while a pod before it breaks and another goes', async () => {
    await logIn()
    await tab.evaluate(`document.querySelector('#pod-uid-web-1 summary').click()`)
    await tab.evaluate(`document.querySelector('#pod-uid-web-1 a').focus()`)
    const order = () =>
      tab.evaluate(`[...document.querySelectorAll('.pods .name')].map((e) => e.textContent).join()`)
    const before = await order()
    const state = {
      waiting: { reason: 'ImagePullBackOff', message: 'not found: registry.example.com/web:2' },
    }
    const containerStatuses = [containerStatus('main', { ready: false, state })]
    rig.pods.put(podObject({ name: 'web-2', status: { conditions: [], containerStatuses } }))
    await sees('.pods').toMatch(
      /web-2\s+ImagePullBackOff[^]*not found: registry.example.com\/web:2[^]*web-1/u,
    )
    rig.pods.put(podObject({ name: 'web-2' }))
    await expect.poll(order, { timeout: 10_000 * slowness }).toBe(before)
    expect(await tab.evaluate('document.activeElement.textContent')).toContain('log of web-1')
    expect(
      await tab.evaluate(`[...document.querySelectorAll('details[open]')].map((e) => e.dataset.uid)`),
    ).toEqual(['uid-web-1'])
  })

  it('keeps the focus while what is around it changes', async () => {
    await logIn()
    await tab.evaluate(`document.querySelector('#pod-uid-web-2 summary').focus()`)
    rig.pods.put(podObject({ name: 'aaa' }))
    rig.pods.put(
      podObject({
        name: 'web-1',
        status: { containerStatuses: [containerStatus('main', { restartCount: 7 })] },
      }),
    )
    await sees().toMatch(/aaa[^]*web-1\s+Running\s+1\/1 ready\s+7 restarts/u)
    rig.pods.remove('aaa')
    rig.events.put(eventObject('more', { reason: 'Extra', lastTimestamp: new Date().toISOString() }))
    await sees().toContain('Extra')
    await sees().not.toContain('aaa')
    expect(await tab.evaluate('document.activeElement.textContent')).toMatch(/^web-2/u)
  })

  it('shows the manifest’s own text as text', async () => {
    await logIn()
    const message = `<img src=x onerror="document.title='taken'">\u202egnp.exe`
    rig.events.put(eventObject('evil', { message, lastTimestamp: new Date().toISOString() }))
    await sees().toContain(`<img src=x onerror="document.title='taken'">\\u202egnp.exe`)
    rig.events.remove('evil')
    expect(await tab.evaluate('document.title')).toBe('podd')
    expect(tab.errors).toEqual([])
  })

  it('goes on after podd was away, and after its token was taken back', async () => {
    await logIn()
    await rig.close(0)
    await sees('#connection').toContain('does not answer')
    expect(await tab.text()).toContain('web-0')
    rig.pods.put(podObject({ name: 'newcomer' }))
    await rig.listenAt(rig.port)
    await sees().toContain('newcomer')
    await sees('#connection').toBe('live')
    rig.pods.remove('newcomer')
    await rig.writeTokens('other')
    await rig.close(0)
    await rig.listenAt(rig.port)
    await sees().toContain('The token is no longer valid.')
    await rig.writeTokens(rig.token)
  })

  it.each(devices)(
    'is readable and accessible on a %s, %i by %i, %s',
    async (name, width, height, scheme) => {
      await tab.setDevice(width, height, scheme)
      await logIn()
      await sees().toContain('BackOff')
      for (const [part, hash] of [
        ['overview', ''],
        ['opened', ''],
        ['pod', '#pod/default/broken'],
      ] as const) {
        await tab.evaluate(`location.hash = ${JSON.stringify(hash)}`)
        if (part === 'pod') await sees('pre').toContain('line 20 of broken')
        else await sees().toContain('Sources')
        // A source has a line, and two at most of what is wrong with it.
        expect(await tab.evaluate(tallest('.sources summary'))).toBeLessThan(90)
        if (part === 'opened') {
          for (const line of ['#pod-uid-broken', '.sources li'])
            await tab.evaluate(`document.querySelector('${line} details:not([open]) > summary')?.click()`)
          await sees('.sources').toMatch(/Place\s+\/etc\/pods\s+Pods\s+7\s+Last answer/u)
        }
        expect(await tab.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
        expect(await axeFindings()).toEqual([])
        expect(await brokenWords()).toEqual([])
        if (kept === undefined) continue
        await mkdir(kept, { recursive: true })
        await writeFile(join(kept, `${part}-${name}-${scheme}.png`), await tab.screenshot())
      }
      expect(tab.errors).toEqual([])
    },
  )

  /** The height of the tallest, in pixels. */
  function tallest(selector: string): string {
    return `Math.max(0, ...[...document.querySelectorAll('${selector}')].map((line) => line.offsetHeight))`
  }

  /** Words of tables, of 24 characters at most, that stand on more than one line. */
  async function brokenWords(): Promise<unknown> {
    return tab.evaluate(`(() => {
      const broken = []
      for (const cell of document.querySelectorAll('td, th')) {
        const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
        for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
          for (const { index, 0: word } of node.data.matchAll(/[^\\s\\/?-]+/gu)) {
            if (word.length > 24 || node.parentElement.closest('.long') !== null) continue
            const range = document.createRange()
            range.setStart(node, index)
            range.setEnd(node, index + word.length)
            if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) broken.push(word)
          }
      }
      return broken
    })()`)
  }

  /** What breaks a rule of WCAG 2.2 AA or of axe's best practices. */
  async function axeFindings(): Promise<unknown> {
    await tab.evaluate(source)
    return tab.evaluate(
      `axe.run().then(({ violations }) => violations.map(({ id, impact, nodes }) => [id, impact, nodes.map(({ html }) => html).slice(0, 3)]))`,
    )
  }
})

/** Has `globalThis.seen` resolve with the moment at which a text stands on the page. */
function watchFor(text: string): string {
  return `globalThis.seen = new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (!document.body.textContent.includes(${JSON.stringify(text)})) return
      observer.disconnect()
      resolve(Date.now())
    }).observe(document.body, { subtree: true, childList: true, characterData: true })
  }), undefined`
}
