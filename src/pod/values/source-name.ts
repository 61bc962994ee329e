/** Where documents come from: the manifest directory, or the URL. */
export type SourceName = 'file' | 'http'

export const sourceNames: readonly SourceName[] = ['file', 'http']

/** A source's name in the configuration, `podSecurity.<name>`. */
export const configNames: Readonly<Record<SourceName, string>> = { file: 'file', http: 'url' }

/** A source as users call it. */
export const sourceWords: Readonly<Record<SourceName, string>> = {
  file: 'the manifest directory',
  http: 'the URL',
}
