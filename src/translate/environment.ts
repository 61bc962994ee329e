/** What `$(NAME)` refers to. */
export type Environment = ReadonlyMap<string, string>

/**
 * Expands `$(NAME)` references as the kubelet does (`third_party/forked/golang/expansion`, 1.36): `$$` gives
 * one `$`, an unknown or unclosed reference stays as it is written, and what a reference gave is not
 * expanded again.
 */
export function expandReferences(text: string, environment: Environment): string {
  return text.replaceAll(/\$\$|\$\(([^)]*)\)/g, (reference: string, name: string | undefined) =>
    name === undefined ? '$' : (environment.get(name) ?? reference),
  )
}

/**
 * The variables in the order the manifest gives them, each expanded with those before it; of several with
 * one name the last value holds, at the place of the first.
 */
export function expandEnvironment(
  variables: readonly { readonly name: string; readonly value: string }[],
): Environment {
  const environment = new Map<string, string>()
  for (const { name, value } of variables) environment.set(name, expandReferences(value, environment))
  return environment
}
