const rows = (bytes: number, row: (index: number) => string): string => {
  const parts: string[] = []
  let length = 0
  for (let index = 0; length < bytes; index += 1) {
    const part = row(index)
    parts.push(part)
    length += part.length
  }
  return parts.join('')
}

const repeat =
  (unit: string, head = '', tail = '') =>
  (bytes: number): string =>
    `${head}${unit.repeat(Math.ceil(bytes / unit.length))}${tail}`

const inSpec =
  (row: (index: number) => string) =>
  (bytes: number): string =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n${rows(bytes, row)}`

const inContainer =
  (row: (index: number) => string, head = '') =>
  (bytes: number): string =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: b\n${head}${rows(bytes, row)}`

/** Texts of about so many bytes that are hard to read as documents, or to complain of. */
export const hardDocuments: Readonly<Record<string, (bytes: number) => string>> = {
  'carriage returns and #': repeat('\r', '', '#'),
  'blank comments': repeat('\r#'),
  'blank lines': repeat(' \n'),
  'document markers': repeat('---\n'),
  'small documents': repeat('---\na\n'),
  'lists in lists': repeat('- '),
  'brackets in brackets': repeat('['),
  commas: repeat(',', '['),
  'mappings in mappings': repeat('{a: '),
  colons: repeat(': '),
  quotes: repeat('"'),
  'bad escapes': repeat('\\q', '"', '"'),
  tags: repeat('! '),
  anchors: (bytes) => rows(bytes, (index) => `- &a${index} x\n`),
  aliases: repeat('- *a\n', '- &a x\n'),
  merges: repeat('  <<: *a\n', 'a: &a {x: 1}\nb:\n'),
  'one key over and over': repeat('k: v\n'),
  'many keys': (bytes) => rows(bytes, (index) => `k${index}: v\n`),
  'JSON keys': (bytes) => `{${rows(bytes, (index) => `"k${index}":1,`)}"z":1}`,
  'unknown fields of a pod': inSpec((index) => `  containr${index}: 1\n`),
  'unknown fields of a container': inContainer((index) => `    volumeMount${index}: 1\n`),
  'unknown fields beside merges': inContainer(
    (index) => `    <<: *a\n    volumeMount${index}: 1\n`,
    '    env: &a []\n',
  ),
  'empty containers': inSpec((index) => (index === 0 ? '  containers:\n' : '  - {}\n')),
  containers: inSpec((index) => (index === 0 ? '  containers:\n' : `  - {name: a${index}, image: b}\n`)),
  variables: inContainer((index) => `    - {name: A${index}, value: b}\n`, '    env:\n'),
  'bad variables': inContainer(() => '    - {valueFrom: {}}\n', '    env:\n'),
  'volumes and mounts': (bytes) =>
    inContainer(
      (index) => `    - {name: v${index}, mountPath: /a${index}}\n`,
      '    volumeMounts:\n',
    )(bytes / 2) + `  volumes:\n${rows(bytes / 2, (index) => `  - {name: v${index}}\n`)}`,
  'files of one volume': inSpec((index) =>
    index === 0
      ? '  containers: [{name: a, image: b}]\n  volumes:\n  - name: v\n    projected:\n      sources:\n      - secret:\n          name: s\n          items:\n'
      : `          - {key: k, path: a/${index}}\n`,
  ),
  resources: inSpec((index) =>
    index === 0
      ? '  resources: {limits: {cpu: 1}}\n  containers:\n'
      : `  - {name: a${index}, image: b, resources: {limits: {r${index}: 1}}}\n`,
  ),
  'tokens of a cluster': (bytes) =>
    inContainer(
      (index) => `    - {name: v${index}-token-abcde, mountPath: /a}\n`,
      '    volumeMounts:\n',
    )(bytes / 2) +
    `  volumes:\n${rows(bytes / 2, (index) => `  - {name: v${index}-token-abcde, secret: {}}\n`)}`,
  'items of a list': (bytes) =>
    `apiVersion: v1\nkind: List\nitems:\n${rows(bytes, (index) => `- {kind: Pod, metadata: {name: a${index}}}\n`)}`,
}
