/**
 * A reporter of vitest: takes down errors that no test was to blame for, one a line, in the file that
 * PODD_TEST_UNHANDLED names. The JSON report doesn't tell of them, and the exit status not apart from failed tests.
 */
import { appendFileSync } from 'node:fs'

export default class UnhandledErrors {
  onTestRunEnd(_modules: unknown, errors: readonly { readonly message: string }[]): void {
    const file = process.env['PODD_TEST_UNHANDLED']
    if (file === undefined) return
    for (const { message } of errors) appendFileSync(file, `${message.split('\n')[0]}\n`)
  }
}
