import { listOptions } from './options.ts'
import type { PoddConfig } from './options.ts'

/** The settings that a KubeletConfiguration has too, under its fields; headers without their values. */
export function kubeletConfigOf(config: PoddConfig): Readonly<Record<string, unknown>> {
  const shown: Record<string, unknown> = {}
  for (const [key, { owner, field, type }] of listOptions()) {
    const value = config[key]
    if (owner !== 'kubelet' || value === undefined) continue
    const isPlain = typeof value === 'boolean' || (typeof value === 'number' && !key.endsWith('Ms'))
    shown[field] = isPlain ? value : type.format(value)
  }
  return shown
}
