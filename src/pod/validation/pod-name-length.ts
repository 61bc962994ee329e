/**
 * A pod's logs are in a directory named `<namespace>_<name>_<uid>`, and Linux takes file names of 255 bytes. The API
 * server takes longer names, and a kubelet never starts such a pod (kubernetes/kubernetes#104288).
 */
const longestTogether = 255 - '__'.length - 'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'.length

/** Why a pod can't have its name; undefined where it can. */
export function podNameTooLong(pod: {
  readonly namespace: string
  readonly name: string
}): string | undefined {
  const length = Buffer.byteLength(pod.namespace) + Buffer.byteLength(pod.name)
  return length <= longestTogether
    ? undefined
    : `a pod's name and namespace may have ${longestTogether} characters together, and these have ${length}: both are in the name of the directory of its logs; shorten the name`
}
