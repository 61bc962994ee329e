/** A group of documents that both refuse for the same fields, of which podd says something else than the API server. */
export interface OtherWords {
  /** Names of documents made by hand. */
  readonly documents: readonly string[]
  readonly what: string
  readonly reason: string
}

/** Every document made by hand of which the API server says something that podd doesn't. docs/VALIDATION.md lists them. */
export const otherWords: readonly OtherWords[] = [
  {
    documents: [
      'spec-81',
      'spec-82',
      'spec-98',
      'spec-118',
      'metadata-1',
      'document-2',
      'document-3',
      'config-map-20',
      'container-92',
      'container-114',
      'container-122',
      'container-127',
      'container-216',
      'container-219',
      'priority-class-11',
      'converted-11',
      'every-field-11',
      'workloads-35',
    ],
    what: 'a field that is missing or empty',
    reason:
      'podd says `Required value`; the API server reads a zero value and complains of that (`Invalid value: 0: must be between 1 and 65535`), or says what needs the field',
  },
  {
    documents: [
      'spec-90',
      'spec-91',
      'container-225',
      'container-227',
      'control-plane-10',
      'converted-26',
      'workloads-34',
    ],
    what: 'the value of an object',
    reason:
      'podd shows it as it is written, the API server with all fields and the names that they have in Go',
  },
  {
    documents: ['metadata-52', 'secret-12', 'secret-13', 'secret-14'],
    what: 'JSON within a value',
    reason: 'the API server passes on what Go’s decoder says',
  },
  {
    documents: ['volume-96', 'volume-98', 'secret-19'],
    what: 'what podd doesn’t support',
    reason: 'podd says that, and looks no further into it',
  },
  {
    documents: ['spec-130'],
    what: '`spec.os.name`',
    reason: 'podd names `linux` alone, for `windows` is refused too',
  },
  {
    documents: ['spec-78', 'spec-80'],
    what: '`spec.securityContext.seLinuxChangePolicy`',
    reason: 'podd names all words of the API, also the one that the API server keeps behind a feature gate',
  },
  {
    documents: ['control-plane-12'],
    what: 'the path of a toleration in an annotation',
    reason: 'podd puts the annotation’s name in brackets, as everywhere',
  },
]
