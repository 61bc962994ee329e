import type { ErrorCode } from '../src/base/errors.ts'

/** What an error code stands for. */
interface ErrorEntry {
  readonly code: ErrorCode
  readonly when: string
  readonly remedy: string
}

const sections: readonly {
  readonly title: string
  readonly intro: string
  readonly entries: readonly ErrorEntry[]
}[] = [
  {
    title: 'The command line',
    intro: 'Printed by `podd`, with exit code 1 (2 for `USAGE`).',
    entries: [
      entry('USAGE', 'A verb, flag or argument is wrong; nothing was done.', 'See `podd VERB --help`.'),
      entry(
        'DAEMON_NOT_RUNNING',
        'Nobody answers at the socket.',
        'Start podd (`systemctl start podd`, `sudo podd run`), or pick its socket with `--socket` or `PODD_SOCKET`.',
      ),
      entry(
        'DAEMON_GONE',
        'The connection to the daemon broke in the middle.',
        'Try again; the daemon was stopped or restarted.',
      ),
      entry(
        'DAEMON_SILENT',
        'A daemon takes connections and answers nobody: it is stopped (`kill -STOP`), hangs, or the host is overloaded.',
        'Look what it does; `systemctl restart podd` restarts it, and the pods run on.',
      ),
      entry(
        'DAEMON_STUCK',
        'The daemon does not end although it was told to.',
        'Look at its log; end it by hand.',
      ),
      entry(
        'DAEMON_UNKNOWN',
        'A podd holds the directories, or something its socket, and which process it is cannot be told.',
        'End it where it runs (in another container, say), then run `podd down` again.',
      ),
      entry(
        'PLACES_DIFFER',
        '`podd down` was given a socket, and flags or a config file that name other places than its daemon has.',
        'Name one of both.',
      ),
      entry(
        'PLACES_UNKNOWN',
        '`podd down` was given the socket of a daemon that is too old to say which places are its own.',
        'Name them, too: `--root-dir` and `--run-dir`, or `--config`.',
      ),
      entry(
        'CONTAINER_NOT_FOUND',
        'The annotation `kubectl.kubernetes.io/default-container` of a pod names a container that it does not have.',
        'Name the container with `-c`.',
      ),
      entry('ROOT_NEEDED', '`podd down` was called by another user than root.', 'Use sudo.'),
      entry('SOCKET_DENIED', "The socket may not be opened: it is its owner's alone.", 'Use sudo.'),
      entry(
        'WRITE_FAILED',
        'The output could not be written, or not all of it.',
        'Make room on the disk it goes to.',
      ),
      entry('UNREADABLE', '`podd validate` cannot read a file.', 'Check the path.'),
      entry(
        'NOTHING_TO_READ',
        'The file is a pipe, and nothing comes from it.',
        'Check the path, and what writes to it.',
      ),
      entry(
        'BAD_CONFIG',
        'The config file has errors; each is listed with its line.',
        'Mend them; [OPTIONS.md](OPTIONS.md) lists the fields.',
      ),
      entry('CONFIG_UNREADABLE', 'The config file that was named cannot be read.', 'Check the path.'),
      entry('BAD_FLAG', "A flag's value is wrong.", 'See `podd run --help`.'),
      entry('BAD_DURATION', 'A duration is not written as Go writes it.', 'Write 500ms, 20s, 1m30s.'),
    ],
  },
  {
    title: 'Starting the daemon',
    intro: 'podd ends with exit code 1 and one of these.',
    entries: [
      entry(
        'ALREADY_RUNNING',
        'Another podd works in the same directories or answers at the same socket.',
        'Stop it, or give this one a `--run-dir` and a `--root-dir` of its own.',
      ),
      entry(
        'DIRECTORY',
        "A directory of podd's cannot be made.",
        'Run as root on a disk that is neither full nor read-only, or move the directory.',
      ),
      entry('LOCK_FAILED', 'The lock file of a directory cannot be opened.', 'As for `DIRECTORY`.'),
      entry('SOCKET_FAILED', 'podd cannot listen at its socket.', 'As for `DIRECTORY`.'),
      entry(
        'SOCKET_PATH_TOO_LONG',
        "The socket's path is longer than Linux allows (107 bytes).",
        'Choose a shorter `--run-dir`.',
      ),
      entry(
        'EMBEDDED_CONTAINERD',
        'The embedded containerd could not be set up, started or cleaned away.',
        '`podd doctor` says what the host lacks.',
      ),
      entry(
        'SANDBOX_IMAGE',
        'The sandbox image could not be made.',
        'Install `catatonit`, or see `podd doctor`.',
      ),
      entry('HOST_COMMAND', 'A program of the host failed.', 'The message has its own words.'),
    ],
  },
  {
    title: 'The container runtime',
    intro: "In events, in `podd get pods` and in podd's log.",
    entries: [
      entry(
        'RUNTIME_UNAVAILABLE',
        'There is no connection to the runtime, it broke during the call, or the runtime has forgotten containers that may run (the message names them).',
        'podd goes on trying; check that the runtime runs and that its disk has room.',
      ),
      entry(
        'RUNTIME_TIMEOUT',
        'The runtime gave no answer in time.',
        "podd looks at what came of it and goes on; look at the runtime's log and at the disk.",
      ),
      entry('RUNTIME_NOT_FOUND', 'The sandbox, container or image does not exist.', ''),
      entry('RUNTIME_EXISTS', 'It exists already.', ''),
      entry('RUNTIME_INVALID', 'The runtime refuses what was asked.', 'The message has its own words.'),
      entry('RUNTIME_UNSUPPORTED', 'This runtime lacks the call.', 'Update it, or do without.'),
      entry('RUNTIME_BAD_REPLY', 'An answer of the runtime lacks what it must have.', 'Update the runtime.'),
      entry(
        'RUNTIME_STALE',
        'The runtime has stopped a pod, and takes its containers for running.',
        'Make room if its disk is full: it cannot write down that they have ended.',
      ),
      entry(
        'RUNTIME_API_VERSION',
        'The runtime speaks no CRI v1.',
        'Use containerd 1.6 or newer with its CRI plugin on; `podd doctor` tells.',
      ),
      entry('RUNTIME_ENDPOINT', "The endpoint is not a unix socket's.", 'Write `unix:///PATH`.'),
      entry(
        'RUNTIME_FAILED',
        'Anything else that the runtime could not do.',
        'The message has its own words.',
      ),
    ],
  },
  {
    title: 'Pods',
    intro: 'Shown as the reason or message of a pod, with an event.',
    entries: [
      entry(
        'IMAGE_UNAVAILABLE',
        'An image is not on this machine and cannot be pulled for now.',
        "The container's waiting reason and the events say why; podd tries again.",
      ),
      entry('IMAGE_VANISHED', 'An image was removed between the pull and the start.', 'It is pulled again.'),
      entry(
        'IMAGE_IMPORT',
        '`podd images import` could not import the archive.',
        'Make it with `docker save` or as an OCI layout, as a tar.',
      ),
      entry(
        'IMAGES_NOT_KNOWN',
        'It is not known yet which images pods need: the runtime was not listed, or a source was not read.',
        'Wait; `podd status` shows both.',
      ),
      entry(
        'IMAGES_DISK_UNKNOWN',
        'The runtime does not say where its images are, so nobody knows how full that disk is.',
        'Update the runtime.',
      ),
      entry(
        'IMAGES_NOT_COLLECTED',
        'The disk that holds the images stays too full, or images could not be removed.',
        'Look at what else fills the disk; `podd gc --dry-run -o json` says why each image stays.',
      ),
      entry(
        'IMAGE_NOT_FOUND',
        'There is no image of that name.',
        '`podd images` lists those that there are.',
      ),
      entry(
        'PIN_UNSUPPORTED',
        'Images can be pinned in the embedded containerd only.',
        "Use the runtime's own tool.",
      ),
      entry(
        'IMPORT_UNSUPPORTED',
        'Images can be imported into the embedded containerd only.',
        "Use the runtime's own tool.",
      ),
      entry(
        'RUN_AS_NON_ROOT',
        'The container would run as root although `runAsNonRoot` is set.',
        'Set `runAsUser`, or use another image.',
      ),
      entry(
        'REFERENCE_MISSING',
        'A pod refers to a ConfigMap, Secret, claim, key or file that is not there.',
        'Add its document to a source; the pod starts by itself then.',
      ),
      entry(
        'ARGUMENTS_TOO_LARGE',
        "A container's environment, or its command and arguments, are larger than the kernel gives any process: 128 KiB for one of them (32 pages), 6 MiB for all.",
        'Shorten them, or mount large values as files.',
      ),
      entry(
        'SUB_PATH',
        'The path of a subPathExpr cannot be made from the environment, or leads out of its volume.',
        'See the event.',
      ),
      entry(
        'USER_RANGE',
        'A pod with `hostUsers: false` could get no users of its own.',
        'Remove `user-range` in its folder below the root directory, or some pods.',
      ),
      entry('POD_HOSTNAME_TOO_LONG', 'A host name has more than 64 characters.', 'Shorten it.'),
      entry('HOOK_FAILED', 'A lifecycle hook failed.', 'See the event.'),
      entry(
        'RESIZE_BELOW_USAGE',
        'A container, or a pod as a whole, was to get a memory limit below what it uses.',
        'Choose a higher limit, or restart the container; podd tries again every 10 seconds.',
      ),
      entry('VOLUME_SETUP', 'A volume could not be set up.', 'The event says which, and why.'),
      entry(
        'VOLUME_TEARDOWN',
        'A volume could not be taken down, or the data of a claim not be deleted.',
        'Of a pod, podd tries again, and the event says why; what is said of a claim names what is in the way.',
      ),
      entry(
        'CGROUP',
        'A cgroup could not be made, changed or removed.',
        "`podd doctor` checks the host's cgroups.",
      ),
      entry(
        'RECORD_WRITE',
        "A pod's record could not be written.",
        'Make room on the disk of the root directory; what runs goes on.',
      ),
      entry(
        'DECODE_UNAVAILABLE',
        'A manifest could not be decoded because the system failed: no thread, no memory, no open file to be had. It says nothing about the manifest.',
        'podd tries again by itself; the pods run on. Look for what the system runs short of.',
      ),
      entry(
        'SOURCE_TIMEOUT',
        'The manifest URL gave no answer in time.',
        'podd asks again at the next period; the pods run on.',
      ),
      entry(
        'BAD_PROXY',
        'A proxy variable in podd’s environment names no proxy.',
        'Write it as `http://HOST:PORT` where podd gets its environment from (`/etc/default/podd` where systemd starts it), and restart podd.',
      ),
      entry(
        'MANIFEST_UNREADABLE',
        'A recorded manifest is none that this version can read.',
        'Drop the manifest in again.',
      ),
      entry(
        'LOG_WATCH',
        "The kernel refuses another file watch, so that a log can't be followed.",
        'Raise `fs.inotify.max_user_instances` and `fs.inotify.max_user_watches`.',
      ),
    ],
  },
  {
    title: 'The API',
    intro:
      "Answers are Kubernetes Status objects; `reason` is Kubernetes' own and `details.causes[0].reason` one of these.",
    entries: [
      entry('API_BadRequest', 'A parameter is wrong.', ''),
      entry('API_NotFound', 'There is no such object, or no such path.', ''),
      entry('CLAIM_IN_USE', "A claim's data cannot be deleted: a pod uses it.", 'Remove the pod first.'),
      entry('CLAIM_NOT_FOUND', 'A claim has no data, or there is none of that name.', ''),
      entry('API_Conflict', 'The object is in a state that the call does not fit.', 'See the message.'),
      entry('API_MethodNotAllowed', 'The path takes another method.', ''),
      entry('API_Timeout', 'The rest of a request did not come in time.', 'Try again.'),
      entry(
        'API_RequestEntityTooLarge',
        'The request has a body that is larger than podd takes, or one where it takes none.',
        'The message has the sizes.',
      ),
      entry('API_RequestHeaderFieldsTooLarge', 'The head of the request is larger than podd takes.', ''),
      entry('API_Invalid', 'A parameter has a value that the API does not take.', 'The message says which.'),
      entry(
        'API_ServiceUnavailable',
        'The container runtime is unavailable, or nothing listens on the port.',
        'Try again.',
      ),
      entry('API_InternalError', 'The call failed; the cause is told.', ''),
    ],
  },
  {
    title: 'Reaching into pods',
    intro: 'What `podd exec`, `podd port-forward`, `podd restart` and `podd top` end with.',
    entries: [
      entry(
        'EXEC_FAILED',
        'A command could not be run in a container.',
        "The message is the runtime's own: most often there is no such program in the image.",
      ),
      entry(
        'EXEC_UNSUPPORTED',
        'The runtime is no containerd; podd runs commands by its API alone.',
        "Use the runtime's own client (`crictl exec`).",
      ),
      entry(
        'BAD_FRAME',
        'What came over the connection of `podd exec` is not what podd says there.',
        'Use the podd that belongs to the daemon (`podd version` tells both).',
      ),
      entry(
        'PORT_REFUSED',
        'Nothing in the pod listens on the port that is forwarded.',
        'Check the port; the pod may need a moment.',
      ),
      entry(
        'PORT_FORWARD_FAILED',
        'A connection to a port of the pod could not be made.',
        'The message has the reason; the host needs `nsenter` (util-linux).',
      ),
      entry(
        'PULL_UNWANTED',
        'An image pull was called off because no pod waits for the image any more.',
        'Nothing: it stands in the log only.',
      ),
      entry(
        'RESTART_REFUSED',
        'The pod or container cannot be restarted as it is: it has finished, is ending, or there is none such.',
        'See `podd get pods`.',
      ),
      entry(
        'NODE_JOB_DEADLINE',
        'Periodic work about the host was not done in time.',
        'It is done again at its time; `podd status` shows how long it takes.',
      ),
      entry('POD_GONE', 'The pod went away while something was done with it.', 'Try again.'),
    ],
  },
  {
    title: 'Never shown',
    intro: "Codes by which podd's parts tell each other why something ended.",
    entries: [
      entry('STOPPED', 'podd was told to stop.', ''),
      entry(
        'CRASHED',
        'An error that nothing handled; podd starts anew. `podd status` names the report.',
        '',
      ),
      entry('CLOSING', 'The API server ends.', ''),
      entry('CLIENT_GONE', 'A client of the API went away.', ''),
      entry('INTERRUPTED', 'Ctrl-C, or newer work on the same pod.', ''),
      entry('INTERNAL', "A fault of podd's own. Should you see it all the same, please report it.", ''),
    ],
  },
]

function entry(code: ErrorCode, when: string, remedy: string): ErrorEntry {
  return { code, when, remedy }
}

/** Every code that docs/ERRORS.md tells of. */
export function documentedErrorCodes(): readonly ErrorCode[] {
  return sections.flatMap(({ entries }) => entries.map(({ code }) => code))
}

/** The text of docs/ERRORS.md. */
export function errorsDoc(): string {
  const parts = sections.map(({ title, intro, entries }) => {
    const rows = entries.map(({ code, when, remedy }) => `| \`${code}\` | ${when} | ${remedy} |`)
    return `## ${title}\n\n${intro}\n\n| Code | When | What to do |\n|---|---|---|\n${rows.join('\n')}\n`
  })
  return `# Errors

<!-- Made from docs/errors-doc.ts by \`npm run generate\`; a test holds it against the code. -->

Every error that podd raises on purpose has a code that stays the same over versions; podd's log has it as \`err.code\`. The
reasons that pods and events show (\`CrashLoopBackOff\`, \`ErrImagePull\`, \`Unhealthy\` and so on) are Kubernetes' own and are
not listed here; of podd's is \`RuntimeNotReady\`: nothing can be done for the pod, or said of it, while the container
runtime can't be used.

${parts.join('\n')}`
}
