/** `net/ipv4/…` means `net.ipv4.…`; a dot inside a part is written as a slash there. */
export function normalSysctl(name: string): string {
  const separator = /[./]/u.exec(name)?.[0]
  if (separator !== '/') return name
  return name.replaceAll(/[./]/gu, (sign) => (sign === '/' ? '.' : '/'))
}
