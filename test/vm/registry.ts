import { checkedImage } from '../support/checked-image.ts'
import type { Machine } from './machine.ts'

const address = '127.0.0.1:5000'
export const pulledImage = `${address}/vm/pulled:1`

const config = {
  version: 0.1,
  storage: { filesystem: { rootdirectory: '/var/lib/docker-registry' } },
  http: { addr: address },
  log: { level: 'error' },
}

/** Debian's registry, on the machine's loopback from its boot on, with the image to pull. Throws where it can't be had. */
export async function provideRegistry(machine: Machine): Promise<void> {
  const isThere = `curl -s http://${address}/v2/vm/pulled/tags/list | grep -q '"1"'`
  if ((await machine.run(`${isThere} && echo yes || true`)).startsWith('yes')) return
  const packages = 'apt-get -qq update && apt-get -qq -y install --no-install-recommends docker-registry'
  await machine.run(`[ -x /usr/bin/docker-registry ] || { ${packages}; }`)
  await machine.write('/etc/docker/registry/config.yml', JSON.stringify(config))
  await machine.run('systemctl enable docker-registry && systemctl restart docker-registry')
  await machine.write('/root/pulled.tar', checkedImage(pulledImage))
  const images = 'ctr --address /run/podd/containerd/containerd.sock --namespace k8s.io images'
  await machine.run(
    `{ ${images} import --no-unpack /root/pulled.tar && ${images} push --plain-http ${pulledImage}; } >/root/push.log 2>&1`,
  )
  await machine.run(`${images} rm --sync ${pulledImage}; rm /root/pulled.tar; sync; ${isThere}`)
}
