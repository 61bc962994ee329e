import { describeHostileRounds } from '../support/hostile-suite.ts'

describeHostileRounds(11)
