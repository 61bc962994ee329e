/** One finding about the host. */
export interface DoctorFinding {
  /** Short and stable. */
  readonly name: string
  readonly status: 'ok' | 'warning' | 'error' | 'skipped'
  /** What was found. */
  readonly message: string
  /** How to fix it; one way per line. */
  readonly hint?: string | undefined
}

export function ok(name: string, message: string): DoctorFinding {
  return { name, status: 'ok', message }
}

/** Nothing tells of it. */
export function skipped(name: string, message: string): DoctorFinding {
  return { name, status: 'skipped', message }
}

export function warning(name: string, message: string, hint: string): DoctorFinding {
  return { name, status: 'warning', message, hint }
}

export function error(name: string, message: string, hint: string | undefined): DoctorFinding {
  return { name, status: 'error', message, hint }
}
