/** Whether HTTP can carry a text as a header's value (RFC 9110, 5.5). */
export function isHeaderValue(text: string): boolean {
  return /^[\t\u0020-\u007E\u0080-\u00FF]*$/u.test(text)
}

/** Whether a host of a URL, as `URL.hostname` gives it, is this host itself. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/u.test(hostname)
}
