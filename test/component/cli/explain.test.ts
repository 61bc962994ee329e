import { describe, expect, it } from 'vitest'
import { callCli } from '../../support/cli-rig.ts'

async function explain(...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await callCli(['explain', ...words])
  expect([exitCode, stderr]).toEqual([0, ''])
  return stdout
}

describe('podd explain', () => {
  it('shows a field as kubectl does, with what podd does with it', async () => {
    expect(await explain('pods.spec.containers.ports')).toMatch(
      /^KIND: {7}Pod\nVERSION: {4}v1\n\nFIELD: ports <\[\]ContainerPort>\n\nDESCRIPTION:\n {4}Ports that it listens at; with hostPort also at the host\.\n\nFIELDS:\n {2}containerPort\t<integer> -required-\n {4}The port at which the program listens\.\n\n/u,
    )
    expect(await explain('po.spec.restartPolicy')).toBe(
      `KIND:       Pod
VERSION:    v1

FIELD: restartPolicy <string>
enum: Always, OnFailure, Never

DESCRIPTION:
    Whether ended containers start again: Always, only after a failure
    (OnFailure), or Never. By default "Always".

`,
    )
  })

  it.each([
    ['pod.spec.affinity', 'Accepted by podd with no effect: there is one host and no scheduler'],
    ['pod.spec.volumes.nfs', 'Refused by podd: '],
    ['runtimeclass', 'GROUP:      node.k8s.io\nKIND:       RuntimeClass\nVERSION:    v1\n'],
    ['secret.stringData', '<map[string]string>'],
    ['node', 'podd creates these objects'],
  ])('%s', async (path, told) => {
    expect((await explain(path)).replaceAll('\n    ', ' ')).toContain(told)
  })

  it.each([
    ['pod.spec.volumes.csi.driver', 'Refused by podd: storage drivers need a control plane.'],
    ['pod.spec.volumes.csi', 'Refused by podd: storage drivers need a control plane.'],
    ['pod.spec.resourceClaims.name', 'Refused by podd: '],
    ['pod.spec.affinity.nodeAffinity', 'Accepted by podd with no effect: there is one host and no scheduler'],
    ['pod.spec.affinity', 'Accepted by podd with no effect: there is one host and no scheduler'],
  ])('%s and all below it have the answer of the parent', async (path, told) => {
    const text = (await explain(path)).replaceAll('\n    ', ' ')
    expect(text).toContain(told)
    expect(text).not.toContain('Works as in Kubernetes')
  })

  it.each(['pod.spec', 'pod.spec.containers', 'pod.spec.containers.livenessProbe', 'pod.spec.volumes'])(
    'says of every supported field of %s what it means',
    async (path) => {
      expect((await explain(path)).split('\n')).not.toContain('    Works as in Kubernetes.')
    },
  )

  it('lists the names of all fields below', async () => {
    const lines = (await explain('pod', '--recursive')).split('\n')
    expect(lines).toContain('  spec\t<PodSpec> -required-')
    expect(lines).toContain('    containers\t<[]Container> -required-')
    expect(lines).toContain('          httpGet\t<HTTPGetAction>')
    expect(lines.length).toBeGreaterThan(500)
  })

  it.each([
    [[], 'explain what?'],
    [['pod', 'extra'], 'explain takes no argument "extra"'],
    [['pod.spec.contaners'], 'Did you mean containers?'],
    [['pod.spec.nonsense'], 'There are activeDeadlineSeconds, '],
    [['pod.spec.nodeName.x'], 'nodeName has no fields.'],
    [['pot'], 'Did you mean po'],
  ])('%j is wrong usage', async (words, told) => {
    const { exitCode, stdout, stderr } = await callCli(['explain', ...words])
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain(told)
  })
})
