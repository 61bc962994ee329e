import { element } from './dom.ts'

/** A part of the page under a heading of its own. */
export function section(title: string, ...children: readonly Node[]): HTMLElement {
  return element('section', { 'aria-label': title }, element('h2', {}, title), ...children)
}
