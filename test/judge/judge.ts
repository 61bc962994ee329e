import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../../src/base/json.ts'
import { freePort } from '../support/free-port.ts'
import type { Verdict } from './verdict.ts'
import { readAnswer } from './verdict.ts'

const startMs = 120_000

const paths: Readonly<Record<string, string>> = {
  Pod: '/api/v1/namespaces/default/pods',
  ConfigMap: '/api/v1/namespaces/default/configmaps',
  Secret: '/api/v1/namespaces/default/secrets',
  PersistentVolumeClaim: '/api/v1/namespaces/default/persistentvolumeclaims',
  RuntimeClass: '/apis/node.k8s.io/v1/runtimeclasses',
  PriorityClass: '/apis/scheduling.k8s.io/v1/priorityclasses',
}

/** A kube-apiserver with an etcd of its own, which is asked and stores nothing. */
export class Judge {
  readonly #directory: string
  readonly #process: ChildProcess
  readonly #port: number
  readonly #token: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4, rejectUnauthorized: false })

  private constructor(directory: string, child: ChildProcess, port: number, token: string) {
    this.#directory = directory
    this.#process = child
    this.#port = port
    this.#token = token
  }

  /** @param program kube-apiserver that starts the etcd of `ORACLE_ETCD` itself */
  static async start(program: string): Promise<Judge> {
    const directory = mkdtempSync(join(tmpdir(), 'podd-judge-'))
    const [port, etcd, peer] = [await freePort(), await freePort(), await freePort()]
    const token = randomBytes(16).toString('hex')
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const key = join(directory, 'key.pem')
    writeFileSync(key, privateKey.export({ type: 'pkcs1', format: 'pem' }))
    writeFileSync(join(directory, 'tokens'), `${token},admin,admin,system:masters\n`)
    const child = spawn(
      program,
      [
        `--etcd-servers=http://127.0.0.1:${etcd}`,
        `--secure-port=${port}`,
        '--bind-address=127.0.0.1',
        `--cert-dir=${join(directory, 'certs')}`,
        '--service-account-issuer=https://kubernetes.default.svc',
        `--service-account-key-file=${key}`,
        `--service-account-signing-key-file=${key}`,
        `--token-auth-file=${join(directory, 'tokens')}`,
        '--allow-privileged=true',
        '--authorization-mode=AlwaysAllow',
        // Off by default in 1.36, where the field is dropped unread; podd has it.
        '--feature-gates=ContainerStopSignals=true',
        '--service-cluster-ip-range=10.96.0.0/16',
        '--disable-admission-plugins=ServiceAccount',
      ],
      {
        stdio: 'ignore',
        env: { ...process.env, ORACLE_DIR: directory, ORACLE_ETCD: String(etcd), ORACLE_PEER: String(peer) },
      },
    )
    const judge = new Judge(directory, child, port, token)
    try {
      await judge.#untilReady()
    } catch (error) {
      await judge.end()
      throw error
    }
    return judge
  }

  async #untilReady(): Promise<void> {
    for (let waitedMs = 0; waitedMs < startMs; waitedMs += 500) {
      if (this.#process.exitCode !== null) throw new Error('the API server ended')
      const answer = await this.#ask('GET', '/readyz', 'application/json', '').catch(() => undefined)
      const namespace = await this.#ask('GET', '/api/v1/namespaces/default', 'application/json', '').catch(
        () => undefined,
      )
      if (answer?.status === 200 && namespace?.status === 200) return
      await sleep(500)
    }
    throw new Error('the API server did not become ready')
  }

  /** What it says of a document; undefined for a kind that isn't asked about. */
  async verdictOnText(kind: string, text: string, type: string): Promise<Verdict | undefined> {
    const path = paths[kind]
    if (path === undefined) return undefined
    for (let attempt = 1; ; attempt += 1) {
      try {
        const url = `${path}?dryRun=All&fieldValidation=Strict`
        const { status, body } = await this.#ask('POST', url, type, text)
        return readAnswer(status, body)
      } catch (error) {
        // It closed a connection that was kept open.
        if (attempt === 3 || this.#process.exitCode !== null) throw error
      }
    }
  }

  #ask(
    method: string,
    path: string,
    type: string,
    body: string,
  ): Promise<{ readonly status: number; readonly body: Json }> {
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${this.#token}`,
        'content-type': type,
        'content-length': Buffer.byteLength(body),
      }
      const options = { host: '127.0.0.1', port: this.#port, agent: this.#agent, method, path, headers }
      const asked = request(options, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ status: answer.statusCode ?? 0, body: parse(text) })
        })
      })
      asked.on('error', reject)
      asked.end(body)
    })
  }

  async end(): Promise<void> {
    this.#agent.destroy()
    if (this.#process.exitCode === null) {
      const ended = new Promise((resolve) => this.#process.once('exit', resolve))
      this.#process.kill('SIGTERM')
      await Promise.race([ended, sleep(15_000)])
      if (this.#process.exitCode === null) this.#process.kill('SIGKILL')
    }
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    // Plain text, as of /readyz.
    return text
  }
}
