import { otherWords } from '../test/judge/other-words.ts'
import { differences } from '../test/judge/differences.ts'

/** The text of docs/VALIDATION.md: how podd's verdicts stand to those of the API server. */
export function validationDoc(): string {
  return `# Validation as the API server does it

<!-- Made from test/judge/differences.ts and other-words.ts by \`npm run generate\`. -->

podd refuses what the API server of Kubernetes 1.36 refuses, with its words and its field paths, and takes what it takes,
but for what podd doesn't support: such an error says \`not supported\`, and [SUPPORT.md](SUPPORT.md) lists the fields. An
error stands at its file, line and column.

- **All errors at once.** The API server looks at types first, then at unknown fields, then at values, and says nothing of
  a later step where an earlier one fails. podd says everything, but what merely follows from another error, and what is
  wrong with the values below a field that it doesn't support: that has to go whatever they are.
- **Fields of no effect** (\`affinity\`, \`tolerations\`, \`serviceAccountName\` …) are checked like all others.
- **Field paths** are those of the API server, also where they name no index (\`volumeMounts.subPath\`) or another field
  (\`spec.overhead.limits[cpu]\`); line and column are those of the field itself.

Stricter on purpose, as \`not supported\`: names of pods that have more than 217 characters with their namespace, relative
paths of the host, a medium of an emptyDir that the kubelet doesn't know, values that the kernel refuses for the sysctls
which each pod may set, ids from 65536 on in a pod with \`hostUsers: false\`, and files of volumes that are in each other's way. Kubernetes takes these pods and fails to start
them. So is a \`hostIP\` that is no address: Kubernetes starts such a pod and opens its port nowhere, without a word.
\`test/contract\` tries on containerd that pods with all that validation takes in security contexts do start.

## What differs

\`npm run judge\` asks podd and a kube-apiserver about the same documents: hundreds made by hand, 5,000 mutations of good
ones, and those of any directory (\`--also=DIR\`). The API server's verdicts are recorded in \`test/fixtures/verdicts\`, and
\`test/unit/pod/api-server-verdicts.test.ts\` holds podd to them. These are all the verdicts that differ:

| what | the API server | why |
|---|---|---|
${differences.map(({ what, apiServer, reason }) => `| ${what} | ${apiServer} it | ${reason} |`).join('\n')}

Of what both refuse, podd says each cause of the API server in its words, beside the place and a hint. Types, unknown
fields and texts that can't be read have words of podd's own, for the API server says what Go's decoder does, and of the
first fault alone. These are all the causes among the documents made by hand that podd puts in other words:

| of what | why |
|---|---|
${otherWords.map(({ what, reason }) => `| ${what} | ${reason} |`).join('\n')}
`
}
