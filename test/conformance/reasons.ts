import type { SpecResult } from './ginkgo-report.ts'

/** Why a spec of Kubernetes' suite need not pass on a host without a control plane. */
export interface Reason {
  /** Of the spec's name. */
  readonly spec: RegExp
  readonly why: string
}

/** The specs that cannot pass by what podd is, and why; each pattern is held to match something. */
export const reasons: readonly Reason[] = []

export function reasonFor({ name }: Pick<SpecResult, 'name'>): string | undefined {
  return reasons.find(({ spec }) => spec.test(name))?.why
}
