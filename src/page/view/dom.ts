import { escapeControls } from '../../base/text.ts'

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
  const made = document.createElement(tag)
  setAttributes(made, attributes)
  made.append(...toNodes(children))
  return made
}

/** An element of SVG. */
export function drawing<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag)
  setAttributes(made, attributes)
  made.append(...toNodes(children))
  return made
}

function setAttributes(target: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') target.addEventListener(name, value)
    else if (value !== undefined && value !== false)
      target.setAttribute(name, value === true ? '' : String(value))
  }
}

function toNodes(children: readonly Child[]): readonly (Node | string)[] {
  return children.flatMap((child) =>
    child === undefined ? [] : [typeof child === 'string' ? escapeControls(child) : child],
  )
}

/** Replaces an element's children, but keeps equal ones, so that the focus stays. */
export function update(parent: Element, children: readonly Node[]): void {
  for (const [at, child] of children.entries()) {
    const current = parent.childNodes[at]
    if (current === undefined) parent.append(child)
    else if (!current.isEqualNode(child)) replace(current, child)
  }
  while (parent.childNodes.length > children.length) parent.lastChild?.remove()
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
