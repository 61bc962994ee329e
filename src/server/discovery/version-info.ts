import { kubernetesVersion, poddVersion } from '../../api/resource.ts'

/** GET /version: the Kubernetes version whose API podd serves, which clients check, and podd's own. */
export function versionInfo(): object {
  const [major = '', minor = ''] = kubernetesVersion.split('.')
  return {
    major,
    minor,
    gitVersion: `v${kubernetesVersion}.0+podd-${poddVersion}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
}
