import { chmodSync, existsSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { cgroupPath, podCgroupName } from './layout.ts'
import type { CgroupDriver, CgroupSystem } from './layout.ts'

/** Where the pods' cgroups are and who makes them. */
export interface CgroupChoice {
  readonly root: string
  readonly driver: CgroupDriver
}

/** Who can write this file decides where podd limits its pods. */
const choiceMode = 0o600

const qosClasses = ['Guaranteed', 'Burstable', 'BestEffort'] as const

/** The choice that stands in the state directory: the one that the pods there were made with. */
export function readCgroupChoice(rootDir: string): CgroupChoice | undefined {
  try {
    const json: Json = JSON.parse(readFileSync(choicePath(rootDir), 'utf8'))
    const { root, driver } = isJsonObject(json) ? json : {}
    if (typeof root !== 'string' || (driver !== 'cgroupfs' && driver !== 'systemd')) return undefined
    return { root, driver }
  } catch {
    // None yet, or not readable: there is nothing to keep to.
    return undefined
  }
}

export function saveCgroupChoice(rootDir: string, choice: CgroupChoice): void {
  const known = readCgroupChoice(rootDir)
  const path = choicePath(rootDir)
  if (known?.root === choice.root && known.driver === choice.driver) {
    chmodSync(path, choiceMode)
    return
  }
  writeFileSync(`${path}.new`, `${JSON.stringify(choice)}\n`, { mode: choiceMode })
  chmodSync(`${path}.new`, choiceMode)
  renameSync(`${path}.new`, path)
}

function choicePath(rootDir: string): string {
  return `${rootDir}/cgroups.json`
}

/** Whether any pod that has a folder under podd's root directory has its cgroup by this choice. */
export function hasPodsIn({ root, driver }: CgroupChoice, system: CgroupSystem, rootDir: string): boolean {
  return podUids(rootDir).some((uid) =>
    qosClasses.some((qosClass) => {
      const path = cgroupPath(podCgroupName(root, qosClass, uid), driver)
      return system.hierarchies.some((hierarchy) => existsSync(`${hierarchy.path}${path}`))
    }),
  )
}

function podUids(rootDir: string): readonly string[] {
  try {
    return readdirSync(`${rootDir}/pods`)
  } catch {
    return []
  }
}
