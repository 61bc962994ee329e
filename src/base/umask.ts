/**
 * What podd takes away from the modes of what it makes, and so does the containerd that it starts: only the owner writes,
 * and anybody may read and enter. Images that are unpacked under a stricter one lock users other than root out of `/`.
 */
export const poddUmask = 0o022

/** Sets it for this process and those it starts, whatever the shell or the service that started podd has. */
export function setPoddUmask(): void {
  process.umask(poddUmask)
}
