import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiRig } from './api-rig.ts'
import { podObject } from './pod-objects.ts'

/**
 * Asks an API server of its own to follow a pod's log, and prints the first bytes of the answer: for a test that takes
 * from this process what a whole user has of it. With `--directory` the log's directory is there already.
 */
await using rig = await ApiRig.start()
rig.pods.put(podObject({ status: { containerStatuses: [] } }))
if (process.argv.includes('--directory'))
  await mkdir(join(rig.podLogsDir, 'default_web_uid-web/main'), { recursive: true })
const response = await rig.open('/api/v1/namespaces/default/pods/web/log?follow=true')
process.stdout.write(`${response.statusCode} `)
if (response.statusCode !== 200) for await (const chunk of response) process.stdout.write(chunk)
response.destroy()
