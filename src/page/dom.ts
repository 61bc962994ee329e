import type { EventObject, PodObject } from '../api/resource.ts'
import { formatAgeOf } from '../api/served-kind.ts'
import { escapeControls } from '../base/text.ts'
import { newestEvents, podLink } from './page-state.ts'

type Child = Node | string | undefined

/** Attributes; a function is a listener of the event of its name, what is undefined or false is left out. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | undefined | ((event: Event) => void)>
>

/** An element of HTML. Text is shown with what is invisible or turns its direction escaped. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  return fill(document.createElement(tag), attributes, children)
}

export function drawing<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children)
}

function fill<T extends Element>(target: T, attributes: Attributes, children: readonly Child[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') target.addEventListener(name, value)
    else if (value !== undefined && value !== false)
      target.setAttribute(name, value === true ? '' : String(value))
  }
  for (const child of children)
    if (child !== undefined) target.append(typeof child === 'string' ? escapeControls(child) : child)
  return target
}

/** Replaces an element's children, but keeps equal ones and those of the same ID, so that the focus stays. */
export function update(parent: Element, children: readonly Node[]): void {
  for (const [at, child] of children.entries()) {
    const id = idOf(child)
    let current = parent.childNodes[at]
    if (id !== '' && current !== undefined && idOf(current) !== id) {
      const moved = [...parent.childNodes].slice(at).find((node) => idOf(node) === id)
      moveBefore(parent, moved ?? child, current)
      current = parent.childNodes[at]
    }
    if (current === undefined) parent.append(child)
    else if (!current.isEqualNode(child)) replace(current, child)
  }
  while (parent.childNodes.length > children.length) parent.lastChild?.remove()
}

function idOf(node: Node): string {
  return node instanceof Element ? node.id : ''
}

/** An element that is moved loses the focus. */
function moveBefore(parent: Element, node: Node, place: Node): void {
  const focused = document.activeElement
  parent.insertBefore(node, place)
  if (focused instanceof HTMLElement && node.contains(focused)) focused.focus({ preventScroll: true })
}

/** Compares the contents of two elements of one kind too. */
function replace(current: ChildNode, next: Node): void {
  if (!(current instanceof Element) || !(next instanceof Element) || current.tagName !== next.tagName) {
    current.replaceWith(next)
    return
  }
  for (const name of current.getAttributeNames()) if (!next.hasAttribute(name)) current.removeAttribute(name)
  for (const { name, value } of next.attributes)
    if (current.getAttribute(name) !== value) current.setAttribute(name, value)
  update(current, [...next.childNodes])
}

/** A cell: text, or what stands in it. */
export type Cell = string | readonly Node[]

/** A table that is a list of cards where the screen is narrow. */
export function table(
  caption: string,
  titles: readonly string[],
  rows: readonly (readonly Cell[])[],
): HTMLElement {
  const headings = titles.map((title) => element('th', { scope: 'col', role: 'columnheader' }, title))
  const body = rows.map((cells) =>
    element(
      'tr',
      { role: 'row' },
      ...cells.map((cell, at) =>
        element(
          'td',
          { role: 'cell', 'data-label': titles[at] },
          // A card shows its label and its value beside each other.
          element('span', {}, ...(typeof cell === 'string' ? words(cell) : cell)),
        ),
      ),
    ),
  )
  // Elements that are displayed as blocks lose their roles in some browsers.
  return element(
    'table',
    { role: 'table', 'aria-label': caption, class: caption.toLowerCase() },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...headings)),
    element('tbody', { role: 'rowgroup' }, ...body),
  )
}

/** Text in which long tokens alone break where they don't fit. */
export function words(text: string): readonly Child[] {
  return text
    .split(/(\S{25,})/u)
    .map((part, at) => (at % 2 === 1 ? element('span', { class: 'long' }, part) : part))
}

/** A part of the page under a heading of its own. */
export function section(title: string, ...children: readonly Node[]): HTMLElement {
  return element(
    'section',
    { 'aria-label': title, class: title.toLowerCase() },
    element('h2', {}, title),
    ...children,
  )
}

/** Names with their values; those without one are left out. */
export function factList(facts: readonly (readonly [name: string, value: Cell | undefined])[]): HTMLElement {
  const known = facts.flatMap(([name, value]) =>
    value === undefined || value === ''
      ? []
      : [element('dt', {}, name), element('dd', {}, ...(typeof value === 'string' ? [value] : value))],
  )
  return element('dl', {}, ...known)
}

/** Said in place of a table without rows. */
export function nothing(text: string): HTMLElement {
  return element('p', { class: 'faint' }, text)
}

const maxEvents = 20

/** The newest events; those of existing pods link to them, unless all are of one. */
export function eventSection(
  all: readonly EventObject[],
  nowMs: number,
  pods: readonly PodObject[] | undefined,
  none: string,
): HTMLElement {
  if (all.length === 0) return section('Events', nothing(none))
  const events = newestEvents(all, maxEvents)
  const titles = ['Last seen', 'Type', 'Reason', ...(pods === undefined ? [] : ['Object']), 'Message']
  const rows = events.map((event): readonly Cell[] => {
    const { lastTimestamp, type, reason, message, count, involvedObject } = event
    const { kind, namespace, name, uid } = involvedObject
    const about = `${kind.toLowerCase()}/${name}`
    const isShown = kind === 'Pod' && pods?.some(({ metadata }) => metadata.uid === uid) === true
    const object = isShown ? [element('a', { href: podLink(namespace, name) }, ...words(about))] : about
    return [
      `${formatAgeOf(lastTimestamp, nowMs)}${count > 1 ? ` (x${count})` : ''}`,
      [element('span', { class: type === 'Warning' ? 'warn' : undefined }, type)],
      reason,
      ...(pods === undefined ? [] : [object]),
      message,
    ]
  })
  const more = all.length - events.length
  const rest = `${more} older ${more === 1 ? 'event' : 'events'}: \`podd events\` on the host.`
  return section('Events', table('Events', titles, rows), ...(more > 0 ? [nothing(rest)] : []))
}
