import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { poddProgram } from '../support/podd-program.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { CliResult, PoddRig } from '../support/podd-rig.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'
import { openWebSocket } from '../support/web-sockets.ts'
import { slowness } from '../support/slowness.ts'

/** A call with its standard input, and what a shell would tell of its end. */
function run(podd: PoddRig, args: readonly string[], input = ''): Promise<CliResult> {
  const child = spawn(poddProgram(), [...withSocket(podd, args)], { env: podd.env })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return collect(child)
}

/** `--socket` before a command's own words. */
function withSocket(podd: PoddRig, args: readonly string[]): readonly string[] {
  const [verb = '', ...rest] = args
  return [verb, '--socket', podd.socketPath, ...rest]
}

async function collect(child: ChildProcess): Promise<CliResult> {
  const chunks: { readonly stdout: Buffer[]; readonly stderr: Buffer[] } = { stdout: [], stderr: [] }
  child.stdout?.on('data', (chunk: Buffer) => chunks.stdout.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => chunks.stderr.push(chunk))
  const code = await new Promise<number>((resolve) => child.once('close', (exit) => resolve(exit ?? -1)))
  return {
    code,
    stdout: Buffer.concat(chunks.stdout).toString(),
    stderr: Buffer.concat(chunks.stderr).toString(),
  }
}

const exec = (podd: PoddRig, script: string, input?: string, pod = 'shell') =>
  run(podd, ['exec', pod, ...(input === undefined ? [] : ['-i']), '--', 'sh', '-c', script], input)

/** What the API answers that refuses to run a command. */
async function askForExec(podd: PoddRig, pod: string, container: string): Promise<string> {
  const path = `/api/v1/namespaces/default/pods/${pod}/exec?container=${container}&command=true&stdout=true`
  const socket = await openWebSocket(podd.socketPath, path, 'v5.channel.k8s.io')
  let words = ''
  socket.on('message', (data: Buffer) => (words += data.toString()))
  await once(socket, 'close')
  return words
}

/** A call at a terminal of its own (`script` of util-linux makes it), with what it shows so far. */
function atTerminal(podd: PoddRig, args: readonly string[]) {
  const words = [poddProgram(), ...withSocket(podd, args)].map((word) => `'${word}'`).join(' ')
  const script = `stty rows 31 cols 97; ${words}; echo "code $?"; stty -a | grep -o -- '-*icanon'`
  const child = spawn('script', ['--quiet', '--return', '--command', script, '/dev/null'], { env: podd.env })
  let shown = ''
  child.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))
  return { child, shown: () => shown.replaceAll('\r', ''), type: (keys: string) => child.stdin.write(keys) }
}

/** What is restarted at once has waited for nothing. */
const config = { crashLoopBackOff: { maxContainerRestartPeriod: '300s' } }

describePodd('reaching into pods', { config }, (rig) => {
  beforeAll(async () => {
    const podd = rig()
    const shellBox = podOf('shell', podd.shared, [
      shellContainer('main', 'shell', 'stay', {
        env: [{ name: 'COLOUR', value: 'blue' }],
        workingDir: '/var/tmp',
        securityContext: { runAsUser: 65_534 },
      }),
      shellContainer('other', 'other', 'stay'),
    ])
    podd.drop('shell', shellBox)
    await podd.untilReady('shell')
  })

  // id: runs-command-container-runs
  it('runs a command as the container runs its own', async () => {
    const podd = rig()
    const { code, stdout, stderr } = await exec(podd, 'id -u; pwd; echo $COLOUR; echo oops >&2; exit 42')
    expect({ code, stdout }).toEqual({ code: 42, stdout: '65534\n/var/tmp\nblue\n' })
    expect(stderr).toBe(
      'Defaulted container "main" out of: main, other\noops\ncommand terminated with exit code 42\n',
    )
    expect(await run(podd, ['exec', 'pod/shell', '-c', 'other', '--', 'id', '-u'])).toEqual({
      code: 0,
      stdout: '0\n',
      stderr: '',
    })
  })

  // id: passes-input-on-end
  it('passes input on, and its end', async () => {
    const podd = rig()
    expect(await exec(podd, 'wc -c', 'x'.repeat(1_000_000))).toMatchObject({ code: 0, stdout: '1000000\n' })
    expect(await exec(podd, 'cat', '')).toMatchObject({ code: 0, stdout: '' })
    // Without -i the command has no input to wait for.
    expect(await run(podd, ['exec', 'shell', '-q', '--', 'cat'], 'ignored')).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    })
  })

  // id: copies-out-nothing-that-runs-as-root
  it('copies files, directories and links inside out of a container, and nothing else', async () => {
    const podd = rig()
    const make = [
      'mkdir -p /t/evil && cd /t/evil && echo x > file && echo x > tool && chmod 6755 tool',
      'mknod disk b 7 0 && chmod 666 disk && mkfifo pipe',
      'ln -s /etc/shadow out && ln -s file in',
    ]
    const made = await run(podd, ['exec', 'shell', '-c', 'other', '--', 'sh', '-c', make.join(' && ')])
    expect(made).toMatchObject({ code: 0 })
    const target = join(podd.directory, 'copied')
    const { code, stderr } = await run(podd, ['cp', '-c', 'other', 'shell:/t/evil', target])
    expect(stderr.trim().split('\n').toSorted()).toEqual([
      'left out evil/disk: a device',
      'left out evil/out: a link to /etc/shadow, which is not copied with it',
      'left out evil/pipe: a named pipe',
    ])
    expect(code).toBe(0)
    expect(readdirSync(target).toSorted()).toEqual(['file', 'in', 'tool'])
    expect(statSync(join(target, 'tool')).mode & 0o7777).toBe(0o755)
  })

  it.concurrent('takes as many words for a command as Linux does, and says where it does not', async () => {
    const podd = rig()
    const words = (count: number): string[] =>
      Array.from({ length: count }, (_, at) => `${at}${'x'.repeat(99_990)}`)
    const script = 'n=0; for word; do n=$((n + ${#word})); done; echo $# $n'
    const call = (count: number): Promise<CliResult> =>
      run(podd, ['exec', 'shell', '-q', '--', 'sh', '-c', script, 'sh', ...words(count)])
    expect(await call(6)).toEqual({ code: 0, stdout: '6 599946\n', stderr: '' })
    expect(await call(20)).toEqual({ code: 0, stdout: '20 1999830\n', stderr: '' })
    // Whoever calls may have a larger stack than a container has, and so more room for words.
    const large = (bytes: number): Promise<CliResult> => {
      const more =
        'ulimit -s 65536; bytes=$1; shift; ' +
        'word=$(head -c 131000 /dev/zero | tr "\\0" x); ' +
        'while [ $bytes -gt 131000 ]; do set -- "$@" "$word"; bytes=$((bytes - 131000)); done; ' +
        'exec "$@" "$(head -c $bytes /dev/zero | tr "\\0" x)"'
      const args = withSocket(podd, ['exec', 'shell', '--', 'echo'])
      return collect(
        spawn('sh', ['-c', more, 'sh', String(bytes), poddProgram(), ...args], { env: podd.env }),
      )
    }
    expect(await large(2_096_900)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/argument list too long/u),
    })
    expect(await large(2_500_000)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the command has 2\d{6} bytes, of which Linux takes 2097152 at most/u),
    })
  })

  // id: attaches-container-input-output
  it('attaches to a container, passes input on and its end, and leaves it running', async () => {
    const podd = rig()
    const reader = 'while read -r word; do echo "got $word"; echo "err $word" >&2; done; echo over; stay'
    const container = shellContainer('main', 'console', reader, { stdin: true, stdinOnce: true })
    const terminal = shellContainer(
      'terminal',
      'terminal',
      'while read -r word; do stty size; echo "got $word"; done; stay',
      {
        stdin: true,
        tty: true,
      },
    )
    podd.drop('console', podOf('console', podd.shared, [container, terminal]))
    const before = await podd.untilReady('console')
    const call = podd.spawnCli('attach', '-i', 'console', '-c', 'main')
    call.child.stdin?.write('one\n')
    await podd.until('the answer', () => call.output().includes('got one'))
    call.child.stdin?.end('two\n')
    await podd.until('the end of the input', () => call.output().includes('over'))
    call.child.kill('SIGINT')
    await once(call.child, 'close')
    expect((await podd.cliOk('logs', 'console', '-c', 'main')).split('\n').toSorted().join(' ')).toBe(
      ' err one err two got one got two over',
    )
    const seen = atTerminal(podd, ['attach', '-it', 'console', '-c', 'terminal'])
    // The size of the terminal may arrive after what is typed first.
    await podd.until('the terminal', () => {
      if (/\n31 97\ngot three\n/u.test(seen.shown())) return true
      seen.type('three\n')
      return false
    })
    seen.child.kill()
    expect(await podd.cli('attach', '-i', 'shell', '-c', 'main')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('container main of pod shell takes no input'),
    })
    const after = await podd.untilReady('console')
    expect(containerOf(after, 'main')).toMatchObject({
      containerID: containerOf(before, 'main').containerID,
      restartCount: 0,
    })
    podd.removeManifest('console')
  })

  it('gives a large output whole to a slow reader', async () => {
    const podd = rig()
    const args = withSocket(podd, ['exec', 'shell', '-q', '--', 'sh', '-c', 'head -c 5000000 /dev/zero'])
    const child = spawn(poddProgram(), [...args], { env: podd.env })
    let bytes = 0
    for await (const chunk of child.stdout) {
      bytes += (chunk as Buffer).length
      if (bytes < 1_000_000) await sleep(5)
    }
    expect(bytes).toBe(5_000_000)
  })

  // id: terminal-raw-mode-large
  it('is a terminal in raw mode, as large as the one before which one sits', async () => {
    const podd = rig()
    const call = atTerminal(podd, ['exec', '-it', 'shell', '-c', 'main', '--', 'sh'])
    await podd.until('the shell', () => call.shown().includes('$'))
    call.type('tty; stty size\n')
    await podd.until('the size', () => /\/dev\/pts\/\d+\n31 97\n/u.test(call.shown()))
    const terminal = await podd.until('its terminal', () => terminalBelow(call.child.pid ?? 0))
    expect(execFileSync('stty', ['-F', terminal, '-a'], { encoding: 'utf8' })).toMatch(/\s-opost\b/u)
    call.type(`${longSleep(9).join(' ')}\n`)
    await podd.until('what was typed', () => isRunning(longSleep(9)))
    call.type('\x03')
    call.type('echo sum $((40 + 2)); exit 9\n')
    await once(call.child, 'close')
    expect(call.shown()).toContain('sum 42')
    expect(call.shown()).toContain('code 9')
    // The terminal is as it was.
    expect(call.shown().trim().endsWith('\nicanon')).toBe(true)
  })

  // id: follows-size-terminal
  it('follows the size of the terminal', async () => {
    const podd = rig()
    // The size that it begins with may come as news as well.
    const script = 'trap "stty size | grep 120 && exit 0" WINCH; echo ready; while :; do sleep 0.1; done'
    const call = atTerminal(podd, [
      'exec',
      '-it',
      'shell',
      '-c',
      'main',
      '--',
      'sh',
      '-c',
      script.replaceAll("'", ''),
    ])
    await podd.until('the command', () => call.shown().includes('ready'))
    const terminal = await podd.until('its terminal', () => terminalBelow(call.child.pid ?? 0))
    spawn('stty', ['-F', terminal, 'rows', '40', 'cols', '120'])
    await once(call.child, 'close')
    expect(call.shown()).toContain('40 120')
  })

  it('ends a command whose caller is interrupted or killed', async () => {
    const podd = rig()
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      const args = withSocket(podd, ['exec', 'shell', '-c', 'main', '--', ...longSleep(2)])
      const child = spawn(poddProgram(), [...args], { env: podd.env })
      await podd.until('the command', () => isRunning(longSleep(2)))
      child.kill(signal)
      await podd.until('its end', () => !isRunning(longSleep(2)))
    }
    await podd.until('the end of its pipes', () => readdirSync(join(podd.runDir, 'exec')).length === 0)
    expect(isRunning(longSleep(2))).toBe(false)
  })

  it('ends a command that takes no more input, when its caller is killed', async () => {
    const podd = rig()
    const args = withSocket(podd, ['exec', 'shell', '-i', '-c', 'main', '--', ...longSleep(3)])
    const child = spawn('sh', ['-c', `yes | exec "$@"`, 'sh', poddProgram(), ...args], { env: podd.env })
    const pid = await podd.until('the command', () => (isRunning(longSleep(3)) ? child.pid : undefined))
    await sleep(500)
    for (const below of childrenOf(pid)) process.kill(below, 'SIGKILL')
    await podd.until('its end', () => !isRunning(longSleep(3)))
    expect(await exec(podd, 'true')).toMatchObject({ code: 0 })
  })

  it('says what is wrong', async () => {
    const podd = rig()
    const wrong = async (...args: readonly string[]) => {
      const { code, stderr } = await run(podd, args)
      return `${code} ${stderr}`
    }
    expect(await wrong('exec', 'nobody', '--', 'true')).toContain(
      '1 podd: Error from server (NotFound): pods "nobody" not found',
    )
    expect(await wrong('exec', 'shell', '-c', 'nobody', '--', 'true')).toContain(
      'container nobody is not valid for pod shell',
    )
    expect(await wrong('exec', 'shell', '-q', '--', 'no-such-program')).toMatch(
      /^1 .*no-such-program.*not found/su,
    )
    const pod = await podd.findPod('shell')
    rmSync(join(podd.logsDir, `default_shell_${pod?.metadata.uid}`, 'other'), { recursive: true })
    const isGone = `the log file of container "other" in pod "shell" does not exist: ${podd.logsDir}`
    expect(await wrong('logs', 'shell', '-c', 'other')).toContain(isGone)
    expect(await wrong('logs', 'shell', '-c', 'other', '-f')).toContain(isGone)
    expect(await wrong('exec', 'shell', 'true')).toContain('2 podd: the command must stand after --')
    expect(await wrong('exec', 'shell')).toContain('2 podd: exec needs a command')
  })

  it('says of a container that has ended that it does not run, also where it does not know yet', async () => {
    const podd = rig()
    const containers = ['main', 'other'].map((name) => shellContainer(name, `ended-${name}`, 'stay'))
    podd.drop('ended', podOf('ended', podd.shared, containers, { spec: { restartPolicy: 'Never' } }))
    const { containerID = '' } = containerOf(await podd.untilReady('ended'), 'main')
    process.kill(podd.daemonPid, 'SIGSTOP')
    let answer: Promise<string>
    try {
      const pid = podd.pidOf(containerID)
      process.kill(pid, 'SIGKILL')
      await podd.until('its end', () => podd.pidOf(containerID) === 0)
      answer = askForExec(podd, 'ended', 'main')
      await sleep(100)
    } finally {
      process.kill(podd.daemonPid, 'SIGCONT')
    }
    expect(await answer).toMatch(/container main of pod ended is not running(: Error)?"/u)
    podd.removeManifest('ended')
  })

  it('ends commands when podd ends, and clears what a killed podd left of them', async () => {
    const podd = rig()
    const begin = async () => {
      const args = withSocket(podd, ['exec', 'shell', '-c', 'main', '--', ...longSleep(4)])
      const call = collect(spawn(poddProgram(), [...args], { env: podd.env }))
      await podd.until('the command', () => isRunning(longSleep(4)))
      return { call }
    }
    const stopped = await begin()
    await podd.restartDaemon('SIGTERM')
    expect(await stopped.call).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the connection to podd broke'),
    })
    await podd.until('its end', () => !isRunning(longSleep(4)))
    const killed = await begin()
    await podd.restartDaemon('SIGKILL')
    expect((await killed.call).code).toBe(1)
    await podd.until('its end', () => !isRunning(longSleep(4)))
    await podd.until('the end of its pipes', () => readdirSync(join(podd.runDir, 'exec')).length === 0)
    const pod = await podd.untilReady('shell')
    expect(containerOf(pod, 'main').restartCount).toBe(0)
  })

  // id: forwards-ports-loopback-device
  it('forwards ports to the loopback device of the pod', async () => {
    const podd = rig()
    const server = 'mkdir /tmp/www; echo hello > /tmp/www/page; httpd -p 127.0.0.1:8081 -h /tmp/www; stay'
    podd.drop(
      'server',
      shellPod('server', podd.shared, server, {
        container: { ports: [{ name: 'http', containerPort: 8081 }] },
      }),
    )
    await podd.untilReady('server')
    const local = await freePort()
    const args = withSocket(podd, ['port-forward', 'server', `${local}:http`, ':8082'])
    const child = spawn(poddProgram(), [...args], { env: podd.env })
    const call = collect(child)
    let shown = ''
    child.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))
    await podd.until('the port', () => /Forwarding from 127\.0\.0\.1:\d+ -> 8082/u.test(shown))
    expect(shown).toContain(`Forwarding from 127.0.0.1:${local} -> 8081\n`)
    const get = () => fetch(`http://127.0.0.1:${local}/page`).then((response) => response.text())
    expect(await get()).toBe('hello\n')
    expect(await Promise.all(Array.from({ length: 10 }, get))).toEqual(
      Array.from({ length: 10 }, () => 'hello\n'),
    )
    // A restart of the pod's container doesn't end the forwarding.
    await podd.cliOk('restart', 'server')
    await podd.untilPod('server', 'restarted', (pod) => containerOf(pod, 'main').restartCount === 1)
    await podd.until('the page', async () => (await get()) === 'hello\n')
    const other = /127\.0\.0\.1:(\d+) -> 8082/u.exec(shown)?.[1]
    expect(await talk(Number(other))).toBe('')
    child.kill('SIGINT')
    const { stdout, stderr } = await call
    expect(stdout).toContain(`Handling connection for ${local}\n`)
    expect(stderr).toContain('error forwarding port 8082: connection refused')
    await expect(talk(local)).rejects.toThrow('ECONNREFUSED')
  })

  it('forwards what one side says after the other has ended', async () => {
    const podd = rig()
    // It answers only when it has read all: the end of the input has to get there, and the answer back.
    const server = `while :; do nc -l -p 8081 -e sh -c 'wc -c'; done`
    podd.drop('counter', shellPod('counter', podd.shared, `${server} & stay`))
    await podd.untilReady('counter')
    const local = await freePort()
    const call = podd.spawnCli('port-forward', 'counter', `${local}:8081`)
    await podd.until('the port', () => call.output().includes('Forwarding'))
    expect(await talk(local, 'x'.repeat(3_000_000))).toBe('3000000\n')
    call.child.kill('SIGINT')
    await once(call.child, 'close')
  })

  // id: restarts-containers-place-once
  it('restarts containers in place, at once', async () => {
    const podd = rig()
    podd.drop(
      'twins',
      podOf('twins', podd.shared, [
        shellContainer('left', 'left', 'say start; stay'),
        shellContainer('right', 'right', 'say start; stay'),
      ]),
    )
    const before = await podd.untilReady('twins')
    expect(await podd.cliOk('restart', 'twins', '-c', 'left')).toBe('pod/twins: restarting left\n')
    await podd.untilPod('twins', 'restarted', (pod) => containerOf(pod, 'left').restartCount === 1)
    const after = await podd.untilReady('twins')
    expect(await podd.untilWords('left', 3)).toEqual(['start', 'end', 'start'])
    expect(await podd.untilWords('right', 1)).toEqual(['start'])
    expect({ uid: after.metadata.uid, ip: after.status.podIP }).toEqual({
      uid: before.metadata.uid,
      ip: before.status.podIP,
    })
    await podd.untilEvent('twins', 'Killing', /^Container left is restarted on request$/u)

    expect(await podd.cliOk('restart', 'twins')).toBe('pod/twins: restarting left, right\n')
    // Not in a crash backoff, however often it is asked for.
    await podd.untilPod(
      'twins',
      'restarted',
      (pod) => containerOf(pod, 'left').restartCount === 2 && containerOf(pod, 'right').restartCount === 1,
    )
    await podd.cliOk('restart', 'twins')
    await podd.untilPod('twins', 'restarted', (pod) => containerOf(pod, 'left').restartCount === 3)
    await podd.untilReady('twins')
  })

  it('starts a container at once that waits in its backoff', async () => {
    const podd = rig()
    podd.drop('crasher', shellPod('crasher', podd.shared, 'say start; [ -e /shared/mended ] || exit 1; stay'))
    await podd.untilPod(
      'crasher',
      'in backoff',
      (pod) => containerOf(pod, 'main').state.waiting?.reason === 'CrashLoopBackOff',
    )
    writeFileSync(join(podd.shared, 'mended'), '')
    const beganMs = performance.now()
    await podd.cliOk('restart', 'crasher')
    await podd.untilReady('crasher')
    expect(performance.now() - beganMs).toBeLessThan(5000 * slowness)
  })

  it('restarts a container whatever its policy, but no pod that has finished', async () => {
    const podd = rig()
    podd.drop('once', shellPod('once', podd.shared, 'say start; stay', { spec: { restartPolicy: 'Never' } }))
    await podd.untilReady('once')
    await podd.cliOk('restart', 'once')
    await podd.untilPod('once', 'restarted', (pod) => containerOf(pod, 'main').restartCount === 1)
    const pod = await podd.untilReady('once')
    expect(pod.status.phase).toBe('Running')
    podd.drop('done', shellPod('done', podd.shared, 'true', { spec: { restartPolicy: 'Never' } }))
    await podd.untilPhase('done', 'Succeeded')
    expect(await podd.cli('restart', 'done')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('(Conflict): pod done has finished'),
    })
  })

  it('finishes a restart that a killed podd had begun', async () => {
    const podd = rig()
    const stubborn = 'say start; trap "say term; sleep 2; exit 0" TERM; while :; do sleep 0.1; done'
    podd.drop(
      'stubborn',
      shellPod('stubborn', podd.shared, stubborn, {
        spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 20 },
      }),
    )
    await podd.untilReady('stubborn')
    await podd.cliOk('restart', 'stubborn')
    await podd.untilLine('stubborn', /term/u)
    await podd.restartDaemon('SIGKILL')
    await podd.untilPod('stubborn', 'restarted', (pod) => containerOf(pod, 'main').restartCount === 1)
    const pod = await podd.untilReady('stubborn')
    expect(pod.status.phase).toBe('Running')
  })

  // id: shows-pods-use
  it('shows what pods use', async () => {
    const podd = rig()
    const hungry = 'dd if=/dev/zero of=/dev/shm/filled bs=1M count=20 2> /dev/null; while :; do :; done'
    podd.drop(
      'hungry',
      podOf('hungry', podd.shared, [
        shellContainer('busy', 'busy', hungry),
        shellContainer('idle', 'idle', 'stay'),
      ]),
    )
    await podd.untilReady('hungry')
    await podd.until('what it uses', async () => /^hungry +[1-9]/mu.test(await podd.cliOk('top', 'pods')))
    const rows = (text: string) =>
      text
        .trim()
        .split('\n')
        .map((line) => line.split(/ {2,}/u))
    const [header, ...lines] = rows(await podd.cliOk('top', 'pods', '--sort-by', 'cpu'))
    expect(header).toEqual(['NAME', 'CPU(cores)', 'MEMORY(bytes)'])
    const [name, cpu = '', memory = ''] = lines[0] ?? []
    expect(name).toBe('hungry')
    expect(cpu).toMatch(/^\d+m$/u)
    expect(Number.parseInt(cpu, 10)).toBeGreaterThan(0)
    expect(Number.parseInt(cpu, 10)).toBeLessThan(1100)
    expect(memory).toMatch(/^\d+Mi$/u)
    expect(Number.parseInt(memory, 10)).toBeGreaterThanOrEqual(19)
    const containers = rows(await podd.cliOk('top', 'pod', 'hungry', '--containers'))
    expect(containers.map(([, container]) => container)).toEqual(['NAME', 'busy', 'idle'])
    expect(await podd.cli('top', 'pod', 'nobody')).toMatchObject({ code: 1 })
    podd.removeManifest('hungry')
    await podd.untilGone('hungry')
  })
})

/** Says `text` to a local port and ends, or says nothing, and gives all that comes back. */
async function talk(port: number, text?: string): Promise<string> {
  const socket: Socket = createConnection({ host: '127.0.0.1', port, allowHalfOpen: true })
  const chunks: Buffer[] = []
  if (text !== undefined) socket.end(text)
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  socket.destroy()
  return Buffer.concat(chunks).toString()
}

function commandLines(): ReadonlyMap<number, string> {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  return new Map(pids.map((pid) => [pid, readOr(`/proc/${pid}/cmdline`)]))
}

/** A command that this test alone runs on the host: others may run the same suite at the same moment. */
function longSleep(kind: number): readonly string[] {
  return ['sleep', `${kind}${String(process.pid).padStart(7, '0')}`]
}

function isRunning(command: readonly string[]): boolean {
  return [...commandLines().values()].includes(`${command.join('\0')}\0`)
}

function childrenOf(pid: number): readonly number[] {
  const found = [...commandLines().keys()].filter(
    (other) => readOr(`/proc/${other}/stat`).split(') ').at(-1)?.split(' ')[1] === String(pid),
  )
  return [...found, ...found.flatMap((child) => childrenOf(child))]
}

/** The terminal that a process below this one sits at. */
function terminalBelow(pid: number): string | undefined {
  for (const child of childrenOf(pid)) {
    const major = Number(readOr(`/proc/${child}/stat`).split(') ').at(-1)?.split(' ')[4])
    if (major >> 8 === 136) return `/dev/pts/${major & 255}`
  }
  return undefined
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
