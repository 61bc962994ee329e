import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { callCli } from '../../support/cli-rig.ts'

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** What bash offers for a line. */
async function complete(line: string, names = 'web db'): Promise<readonly string[]> {
  const { stdout } = await callCli(['completion', 'bash'])
  const script = `${stdout}\nCOMP_WORDS=(${line}x)\nCOMP_WORDS[-1]=\${COMP_WORDS[-1]%x}\nCOMP_CWORD=$((\${#COMP_WORDS[@]} - 1))\npodd() { case $* in *namespaces*) echo default team ;; 'get pod web -n team '*) echo main side ;; *'get pods -n team'*) echo inteam ;; 'get secrets '*) echo key ;; *) printf %s ${quote(names)} ;; esac; }\n_podd\nprintf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
}

describe('podd completion', () => {
  it.each<[line: string, offered: readonly string[]]>([
    ['podd de', ['debug', 'describe', 'delete']],
    ['podd exec ', ['web', 'db']],
    [
      'podd get po',
      ['pods', 'pod', 'po', 'poddisruptionbudgets', 'poddisruptionbudget', 'podtemplates', 'podtemplate'],
    ],
    ['podd get pods w', ['web']],
    ['podd get --sort', ['--sort-by']],
    ['podd get --show', ['--show-labels', '--show-kind']],
    ['podd get -L app pods w', ['web']],
    ['podd get sour', ['sources']],
    ['podd images pu', ['pull']],
    ['podd debug d', ['db']],
    ['podd logs -n team ', ['inteam']],
    ['podd -n team logs in', ['inteam']],
    ['podd logs -n ', ['default', 'team']],
    ['podd exec -it web -n team -c ', ['main', 'side']],
    ['podd debug -n team pod/web --target si', ['side']],
    ['podd get secrets k', ['key']],
    ['podd get -o wide secrets k', ['key']],
    ['podd explain confi', ['configmaps', 'configmap']],
    ['podd logs --tail 5 w', ['web']],
  ])('bash: %s', async (line, offered) => {
    expect((await complete(line)).toSorted()).toEqual(offered.toSorted())
  })

  it('bash runs nothing that a name holds', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'podd-completion-'))
    const file = join(directory, 'ran')
    const names = `web $(touch ${file}) \`touch ${file}\` \${x:=$(touch ${file})} w;touch w*`
    const offered = await complete('podd exec w', names)
    expect(existsSync(file)).toBe(false)
    expect(offered).toEqual(['web', 'w', 'w'])
    rmSync(directory, { recursive: true })
  })

  it('gives zsh and fish their own', async () => {
    expect((await callCli(['completion', 'zsh'])).stdout).toMatch(/^#compdef podd\n.*complete .* podd\n$/su)
    const fish = (await callCli(['completion', 'fish'])).stdout
    expect(fish).toContain('complete -c podd -n __fish_use_subcommand -f -a get')
    for (const line of fish.trim().split('\n')) expect(line).toMatch(/^complete -c podd -n .*$/u)
  })

  it('names the shells that there are', async () => {
    expect(await callCli(['completion', 'csh'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('podd completion bash|zsh|fish'),
    })
  })
})
