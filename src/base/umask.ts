/**
 * The umask of podd and of the containerd that it starts: only the owner may write, everyone may read and enter. Under a
 * stricter one, users other than root could not enter `/` of an image that was unpacked.
 */
export const poddUmask = 0o022

/** Sets the umask for this process and its children, independent of the shell or service that started podd. */
export function setPoddUmask(): void {
  process.umask(poddUmask)
}
