import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isJsonObject } from '../../../src/base/json.ts'
import { isPodDocument } from '../../../src/pod/document.ts'
import { decodeDocuments } from '../../../src/pod/decode-documents.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'
import { toContainerConfig } from '../../../src/translate/container-config.ts'
import { podDns } from '../../../src/translate/dns.ts'
import { expandEnvironment } from '../../../src/translate/environment.ts'
import { containerMounts } from '../../../src/translate/mounts.ts'
import { podCgroupResources } from '../../../src/translate/resources.ts'
import { toSandboxConfig } from '../../../src/translate/sandbox-config.ts'
import { hostFacts } from './pods.ts'

/*
 * Manifests and the CRI messages that they become, whole: test/fixtures/golden/NAME.yaml and NAME.json.
 * After a change that is meant, `vitest run --update` writes the latter anew, for review.
 */

const folder = join(import.meta.dirname, '../../fixtures/golden')
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.replace('.yaml', ''))

const uid = '3f6a1c52-0000-4000-8000-000000000001'
const host = { servers: ['192.0.2.1'], searches: ['lan'], options: [] }
const resources = { ...hostFacts, minOomScoreAdj: 0 }

async function readPod(name: string): Promise<Pod> {
  const path = `${name}.yaml`
  const { documents, problems } = await decodeDocuments(readFileSync(join(folder, path)), { path })
  expect(problems).toEqual([])
  const [document] = documents
  if (document === undefined || !isPodDocument(document)) throw new Error(`${path} has no pod`)
  return document.pod
}

function messagesOf(pod: Pod): object {
  const volumes = new Map(
    pod.spec.volumes.map(({ name, hostPath }) => [
      name,
      { hostPath: hostPath?.path ?? `/volumes/${name}`, selinuxRelabel: hostPath === undefined },
    ]),
  )
  const sandbox = toSandboxConfig({
    pod,
    uid,
    attempt: 1,
    instance: 'edge',
    manifestHash: 'v1-manifest',
    cgroupParent: '/kubepods/pod',
    logDirectory: '/var/log/pods/x',
    dns: podDns({ pod, host, clusterServers: [], clusterDomain: '' }).config,
    clusterDomain: '',
    resources,
  })
  const containers = [...pod.spec.initContainers, ...pod.spec.containers].map((container) => {
    return toContainerConfig({
      pod,
      uid,
      container,
      restartCount: 2,
      instance: 'edge',
      specHash: 'v1-spec',
      imageRef: 'sha256:image',
      imageUser: { uid: 0 },
      environment: expandEnvironment(container.env),
      mounts: containerMounts({
        container,
        volumes,
        etcHostsPath: '/pod/etc-hosts',
        terminationLogPath: '/pod/log',
        selinux: false,
      }),
      resources,
      security: { seccompRoot: '/seccomp', seccompDefault: false, appArmor: false },
    })
  })
  return { sandbox, containers, cgroup: podCgroupResources(pod.spec, resources, undefined) }
}

/** Bytes as the text they are. */
function readable(_: string, value: unknown): unknown {
  const bytes = isJsonObject(value) && value['type'] === 'Buffer' ? value['data'] : undefined
  return Array.isArray(bytes) ? Buffer.from(bytes).toString() : value
}

describe('golden messages', () => {
  it.each(names)('of %s.yaml', async (name) => {
    const messages = messagesOf(await readPod(name))
    await expect(`${JSON.stringify(messages, readable, 2)}\n`).toMatchFileSnapshot(
      join(folder, `${name}.json`),
    )
  })
})
