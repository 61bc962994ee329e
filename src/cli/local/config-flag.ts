import { defaultConfigPath } from '../../config/places.ts'
import type { FlagSpec } from '../arguments/parse-arguments.ts'

export const configFlag: FlagSpec = {
  name: 'config',
  label: 'FILE',
  doc: `The config file. ${defaultConfigPath} is read where nothing is said, if it is there.`,
}
