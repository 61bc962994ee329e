/** A group of documents on which podd and the API server differ, and why that stays. */
export interface Difference {
  /** Names of documents of the corpus; empty for what was seen of others. */
  readonly documents: readonly string[]
  readonly apiServer: 'takes' | 'refuses'
  readonly what: string
  readonly reason: string
}

/** Every verdict of the corpus that differs. docs/VALIDATION.md lists them. */
export const differences: readonly Difference[] = [
  {
    documents: ['spec-22'],
    apiServer: 'refuses',
    what: '`ephemeralContainers` in a new pod',
    reason: 'a manifest is all that podd has: there is no running pod to add them to by another call',
  },
  {
    documents: ['document-1'],
    apiServer: 'takes',
    what: 'a document without `apiVersion`',
    reason: 'the API server knows it from the URL, and kubectl refuses it as podd does',
  },
  {
    documents: ['document-13', 'claim-29'],
    apiServer: 'refuses',
    what: 'unknown fields in `status`',
    reason: 'podd drops the status as a whole, so that dumps of any version of Kubernetes can be read',
  },
  {
    documents: ['scheduling-117'],
    apiServer: 'refuses',
    what: '`priority` without a class',
    reason: 'static pods give their priority themselves, and so may those of podd',
  },
  {
    documents: ['text-2'],
    apiServer: 'refuses',
    what: '`\\/` in a double-quoted YAML scalar',
    reason: 'YAML 1.2 and JSON have it',
  },
  {
    documents: ['text-8', 'text-9'],
    apiServer: 'takes',
    what: 'tags that YAML doesn’t define, such as `!local`',
    reason: 'Kubernetes drops the tag silently; nearly always it is a value that lacks its quotes',
  },
  {
    documents: ['text-41', 'text-71'],
    apiServer: 'refuses',
    what: 'a key beside `<<` that the merged mapping has, too',
    reason: 'that is what merging is for; `kubectl` takes it with `--validate=false`',
  },
  {
    documents: ['text-78'],
    apiServer: 'refuses',
    what: '`!!str` without a value',
    reason: 'YAML reads it as the empty text, and so does podd',
  },
  {
    documents: ['text-91'],
    apiServer: 'refuses',
    what: 'an empty document before the pod',
    reason:
      'the API server looks at the first document of a text alone; podd passes over empty ones, as `kubectl` does',
  },
  {
    documents: ['effective-110'],
    apiServer: 'refuses',
    what: 'another namespace than that of the URL',
    reason: 'podd takes documents of any namespace',
  },
  {
    documents: ['effective-2926'],
    apiServer: 'takes',
    what: 'a quantity that is a suffix alone, such as `Mi`',
    reason: 'it is read as 0 there; nearly always its number was lost',
  },
  {
    documents: [],
    apiServer: 'refuses',
    what: '`overhead: {}` in a pod without a RuntimeClass',
    reason: 'it asks for nothing, and generated clients write it',
  },
  {
    documents: [],
    apiServer: 'refuses',
    what: '`5.0` for an integer in JSON',
    reason: 'it is the same number; `kubectl` sends it on as 5, and in YAML the API server takes it, too',
  },
  {
    documents: [],
    apiServer: 'takes',
    what: 'lines in brackets that begin with a tab',
    reason: 'go-yaml refuses them as well, but only behind words without quotes',
  },
]
