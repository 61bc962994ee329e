/** What the launcher tells the C library's allocator, which reads it once, when a program starts. */
const variables: readonly string[] = ['MALLOC_ARENA_MAX', 'MALLOC_TRIM_THRESHOLD_']

/**
 * Takes the allocator's settings out of this environment: they are for podd alone, and no program that it runs inherits
 * them. Gives them for a podd that takes this one's place.
 */
export function takeAllocatorSettings(
  env: Record<string, string | undefined>,
): Readonly<Record<string, string>> {
  const taken: Record<string, string> = {}
  for (const name of variables) {
    const value = env[name]
    if (value !== undefined) taken[name] = value
    delete env[name]
  }
  return taken
}
