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
        'No daemon listens at the socket.',
        'Start podd (`systemctl start podd`, `sudo podd run`), or pick its socket with `--socket` or `PODD_SOCKET`.',
      ),
      entry(
        'DAEMON_GONE',
        'The connection to the daemon broke during the call.',
        'Try again; the daemon was stopped or restarted.',
      ),
      entry(
        'ANSWER_UNREADABLE',
        'What listens at the socket answers, but not as podd does.',
        "Name podd's socket with `--socket`.",
      ),
      entry(
        'DAEMON_SILENT',
        'The daemon accepts connections and does not answer: it is stopped (`kill -STOP`), hangs, or the host is overloaded.',
        'Check its state; `systemctl restart podd` restarts it, and the pods keep running.',
      ),
      entry(
        'UPGRADE_REFUSED',
        '`podd upgrade` changed nothing: the release is not signed by a trusted key, is not what its checksum says, or is for another kind of installation.',
        'Take the release from its origin again; name its key with `--key`.',
      ),
      entry(
        'UPGRADE_FAILED',
        'The new podd was not healthy within a minute, or had not adopted all pods; `podd upgrade` went back to the version before.',
        'See its log (`journalctl -u podd`).',
      ),
      entry('DAEMON_STUCK', 'The daemon does not end after SIGTERM.', 'Check its log; end it by hand.'),
      entry(
        'DAEMON_UNKNOWN',
        'A process holds the locks of the directories or the socket, and podd cannot determine which.',
        'End it where it runs (in another container, say), then run `podd down` again.',
      ),
      entry(
        'PLACES_DIFFER',
        '`podd down` was given a socket, and flags or a config file that name other directories than those of its daemon.',
        'Give either of them.',
      ),
      entry(
        'PLACES_UNKNOWN',
        '`podd down` was given the socket of a daemon that is too old to report its directories.',
        'Give them too: `--root-dir` and `--run-dir`, or `--config`.',
      ),
      entry(
        'CONTAINER_NOT_FOUND',
        'The annotation `kubectl.kubernetes.io/default-container` of a pod names a container that the pod does not have.',
        'Name the container with `-c`.',
      ),
      entry('ROOT_NEEDED', '`podd down` was called by a user other than root.', 'Use sudo.'),
      entry('SOCKET_DENIED', 'Permission to open the socket was denied: only its owner may.', 'Use sudo.'),
      entry(
        'WRITE_FAILED',
        'The output could not be written completely.',
        'Free space on the disk that it is written to.',
      ),
      entry(
        'JSONPATH_FAILED',
        'A JSONPath leads into what has no such part: an index beyond a list, a filter of what is no list, a comparison of a number with a text. Or no object has what `--sort-by` names.',
        'Look at the objects with `-o yaml`; `[*]` takes all elements, however many there are.',
      ),
      entry(
        'UNREADABLE',
        '`podd validate`, `diff`, `apply` or `delete` cannot read a file.',
        'Check the path.',
      ),
      entry(
        'NO_MANIFEST_DIRECTORY',
        '`podd apply` or `podd delete` has no directory of manifests to change.',
        'Set `staticPodPath` to a directory that exists.',
      ),
      entry(
        'MANIFEST_ELSEWHERE',
        'An object stands in another file or comes from a URL, or the file has other objects too.',
        'Change it where it stands; `--overwrite` replaces a file with all its objects.',
      ),
      entry(
        'WAIT_FAILED',
        'What is waited for cannot come: a manifest has an error, or the pod is missing or has failed.',
        'The message says why.',
      ),
      entry('DRAIN_UNDONE', '`podd drain --undo` ended this drain.', 'Nothing: pods start again.'),
      entry('WAIT_TIMEOUT', 'The condition was not met in time.', 'Wait longer: `--timeout`.'),
      entry(
        'NOTHING_TO_READ',
        'The file is a pipe, and no data arrived from it.',
        'Check the path, and the program that writes to it.',
      ),
      entry(
        'BAD_CONFIG',
        'The config file has errors; each is listed with its line.',
        'Fix them; [OPTIONS.md](OPTIONS.md) lists the fields.',
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
        'Stop it, or start this one with a `--run-dir` and a `--root-dir` of its own.',
      ),
      entry(
        'DIRECTORY',
        "A directory of podd's cannot be made.",
        'Run as root on a disk that is neither full nor read-only, or move the directory.',
      ),
      entry('LOCK_FAILED', 'The lock file of a directory cannot be opened.', 'As for `DIRECTORY`.'),
      entry(
        'SOCKET_FAILED',
        'podd cannot listen at its socket, or at the port of `api.listen` or `readOnlyPort`.',
        'Of the socket: as for `DIRECTORY`. Of a port: end the process that has it (`ss -ltnp`), give this host the address, or name another one; podd tries again every 10 s.',
      ),
      entry(
        'SOCKET_PATH_TOO_LONG',
        "The socket's path is longer than Linux allows (107 bytes).",
        'Choose a shorter `--run-dir`.',
      ),
      entry(
        'EMBEDDED_CONTAINERD',
        'The embedded containerd could not be set up, started or removed.',
        '`podd doctor` shows what the host lacks.',
      ),
      entry(
        'SANDBOX_IMAGE',
        'The sandbox image could not be made.',
        'Install `catatonit`, or see `podd doctor`.',
      ),
      entry('HOST_COMMAND', 'A program of the host failed.', "The message contains the program's output."),
    ],
  },
  {
    title: 'The container runtime',
    intro: "In events, in `podd get pods` and in podd's log.",
    entries: [
      entry(
        'RUNTIME_UNAVAILABLE',
        'There is no connection to the runtime, it broke during the call, or the runtime no longer lists containers that may still run (the message names them).',
        'podd retries; check that the runtime runs and that its disk has space.',
      ),
      entry(
        'RUNTIME_TIMEOUT',
        'The runtime did not answer in time.',
        "podd reads back the result of the call and continues; check the runtime's log and the disk.",
      ),
      entry('RUNTIME_NOT_FOUND', 'The sandbox, container or image does not exist.', ''),
      entry('RUNTIME_EXISTS', 'The sandbox, container or image already exists.', ''),
      entry(
        'RUNTIME_INVALID',
        'The runtime rejected the request.',
        "The message contains the runtime's own.",
      ),
      entry(
        'RUNTIME_UNSUPPORTED',
        'The runtime does not implement the call.',
        'Update it, or do without the feature.',
      ),
      entry('RUNTIME_BAD_REPLY', 'A reply of the runtime lacks a required field.', 'Update the runtime.'),
      entry(
        'RUNTIME_STALE',
        'The runtime has stopped a sandbox, and still reports its containers as running.',
        'Free space if its disk is full: it cannot record that they have exited.',
      ),
      entry(
        'RUNTIME_API_VERSION',
        'The runtime does not implement CRI v1.',
        'Use containerd 1.6 or newer with its CRI plugin enabled; `podd doctor` checks it.',
      ),
      entry('RUNTIME_ENDPOINT', 'The endpoint is not a unix socket.', 'Write `unix:///PATH`.'),
      entry(
        'RUNTIME_FAILED',
        'The call failed for any other reason.',
        "The message contains the runtime's own.",
      ),
    ],
  },
  {
    title: 'Pods',
    intro: 'Shown as the reason or message of a pod, with an event.',
    entries: [
      entry(
        'IMAGE_UNAVAILABLE',
        'An image is not present on this machine and cannot be pulled now.',
        "The container's waiting reason and the events say why; podd retries.",
      ),
      entry('IMAGE_VANISHED', 'An image was removed between the pull and the start.', 'It is pulled again.'),
      entry(
        'IMAGE_DISK_FULL',
        'The disk of the images has too little free space for a pull, also after unused images were removed.',
        'Make room on that disk; `podd gc --dry-run` shows which images are unused.',
      ),
      entry(
        'IMAGE_IMPORT',
        'An image archive could not be imported, by `podd images import` or from the directory `images/` of the state directory.',
        'Make it with `docker save` or as an OCI layout, as a tar, which gzip or zstd may compress.',
      ),
      entry(
        'IMAGES_NOT_KNOWN',
        'The images in use are not known yet: the runtime was not listed, or a source was not read.',
        'Wait; `podd status` shows both.',
      ),
      entry(
        'IMAGES_DISK_UNKNOWN',
        'The runtime does not report where its images are, so the usage of that disk is unknown.',
        'Update the runtime.',
      ),
      entry(
        'IMAGES_NOT_COLLECTED',
        'Image garbage collection did not free enough of the disk, or could not remove some images.',
        'Check what else fills the disk; `podd gc --dry-run -o json` says why each image is kept.',
      ),
      entry('IMAGE_NOT_FOUND', 'There is no image of that name.', '`podd images` lists the images.'),
      entry(
        'IMAGE_IN_USE',
        'The image to be removed is used, or named, by a pod or by another container of the runtime.',
        'Remove the pod first, or use `--force`. The image of the sandboxes cannot be removed.',
      ),
      entry(
        'IMAGE_PINNED',
        'The image to be removed is pinned, as imported images are.',
        'Unpin it with `podd images unpin`, or use `--force`.',
      ),
      entry(
        'IMAGE_EXPORT',
        'An image could not be exported. The layers of an image that was pulled are deleted once they are unpacked: only images that were imported can be exported.',
        'Copy it from its registry to an archive, with `skopeo copy` say, or import the archive again that it came from.',
      ),
      entry(
        'EXPORT_UNSUPPORTED',
        'Images can be exported from the embedded containerd only.',
        "Use the runtime's own tool.",
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
        'A pod refers to a ConfigMap, Secret, claim, key or file that does not exist.',
        'Add its document to a source; podd then starts the pod.',
      ),
      entry(
        'ARGUMENTS_TOO_LARGE',
        "A container's environment, or its command and arguments, exceed the kernel's limits: 128 KiB for one of them (32 pages), 6 MiB for all.",
        'Shorten them, or mount large values as files.',
      ),
      entry(
        'MOUNT_NOT_SHARED',
        'A volumeMount has mountPropagation `HostToContainer` or `Bidirectional`, and what it shows is on no shared mount of the host.',
        'Run `mount --make-rshared /` at each boot, before podd: systemd does it, other init programs take it in a script. The container starts by itself then.',
      ),
      entry(
        'SUB_PATH',
        'The path of a subPath or subPathExpr leads out of its volume, has no value in the environment, or is no file of a configMap, secret, downwardAPI or projected volume.',
        'See the event. The container starts by itself once the missing key is there.',
      ),
      entry(
        'USER_RANGE',
        'No range of user ids could be allocated for a pod with `hostUsers: false`.',
        'Remove `user-range` in its directory below the root directory, or remove some pods.',
      ),
      entry('POD_HOSTNAME_TOO_LONG', 'A host name has more than 64 characters.', 'Shorten it.'),
      entry('HOOK_FAILED', 'A lifecycle hook failed.', 'See the event.'),
      entry(
        'RESIZE_BELOW_USAGE',
        'The new memory limit of a container, or of a pod as a whole, is below its current usage.',
        'Choose a higher limit, or restart the container; podd retries every 10 seconds.',
      ),
      entry('VOLUME_SETUP', 'A volume could not be set up.', 'The event says which, and why.'),
      entry(
        'VOLUME_TEARDOWN',
        'A volume could not be torn down, or the data of a claim could not be deleted.',
        'podd retries for the volumes of a pod, and the event says why; the message about a claim names the obstacle.',
      ),
      entry(
        'CGROUP',
        'A cgroup could not be created, changed or removed.',
        "`podd doctor` checks the host's cgroups.",
      ),
      entry(
        'RECORD_WRITE',
        "A pod's record could not be written.",
        'Free space on the disk of the root directory; running containers keep running.',
      ),
      entry(
        'DECODE_UNAVAILABLE',
        'A manifest could not be decoded because the system lacked a thread, memory or a file descriptor. The manifest may be valid.',
        'podd retries; the pods keep running. Check which resource the system lacks.',
      ),
      entry(
        'REPORT_FAILED',
        "The server of `report` did not take the host's status.",
        'podd sends the newest one again, soon and then after the next period; nothing else waits for that. Check the URL, its certificate and the credentials.',
      ),
      entry(
        'SOURCE_FILE',
        'A file that a URL is asked with (a certificate, a key, a token) cannot be read or used.',
        'Check its path, its mode and what it holds; podd reads it again with the next request, and the pods keep running.',
      ),
      entry(
        'SOURCE_TIMEOUT',
        'The manifest URL did not answer in time.',
        'podd fetches it again after the next period; the pods keep running.',
      ),
      entry(
        'UPDATE_REFUSED',
        'A unit can’t go back to the revision that was asked for, or there is no such unit.',
        '`podd history UNIT` lists the revisions that are kept.',
      ),
      entry(
        'SOURCE_URL',
        'A `${NAME}` in the URL of a source is none of this host’s values.',
        'Name it in `values` of the config file, or correct the URL.',
      ),
      entry(
        'BAD_PROXY',
        'A proxy variable in podd’s environment is not the URL of a proxy.',
        'Write it as `http://HOST:PORT` where podd gets its environment from (`/etc/default/podd` where systemd starts it), and restart podd.',
      ),
      entry(
        'MANIFEST_UNREADABLE',
        'This version cannot read the manifest in a pod record.',
        'Write the manifest to its source again.',
      ),
      entry(
        'LOG_SPACE',
        'The logs of containers take more than `containerLogTotalMaxSize`, although all that rotation has put aside is removed.',
        'Lower `containerLogMaxSize`, raise `containerLogTotalMaxSize`, or have the containers log less.',
      ),
      entry(
        'LOG_WATCH',
        "The kernel refuses another inotify watch, so a log can't be followed.",
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
      entry('API_NotFound', 'The object or path does not exist.', ''),
      entry('CLAIM_IN_USE', "A claim's data cannot be deleted: a pod uses it.", 'Remove the pod first.'),
      entry('CLAIM_NOT_FOUND', 'The claim does not exist or has no data.', ''),
      entry(
        'OBJECT_NOT_KEPT',
        'What was written over the API cannot be saved; nothing was changed.',
        'Free disk space, or mend what the message names.',
      ),
      entry(
        'PATCH_NOT_APPLICABLE',
        'The patch is not well-formed, or does not fit the object.',
        'See the message.',
      ),
      entry('API_Conflict', 'The state of the object does not allow the call.', 'See the message.'),
      entry(
        'API_Unauthorized',
        'Who asks is not known.',
        'Use a client certificate or a token that podd knows.',
      ),
      entry(
        'API_Forbidden',
        'Who asks may not do this.',
        'Ask as somebody with another role, or as root over the unix socket.',
      ),
      entry(
        'API_TooManyRequests',
        'The client sends more requests than it may.',
        'Try again after a second.',
      ),
      entry(
        'API_NotAcceptable',
        'The client takes no form of the answer that podd has.',
        'Accept application/json.',
      ),
      entry(
        'API_UnsupportedMediaType',
        'The body of the request has a form that podd does not read.',
        'The message names those it reads.',
      ),
      entry(
        'API_Expired',
        'A list or watch was to go on from a revision whose changes are no longer remembered.',
        'List again, and watch from there.',
      ),
      entry('API_MethodNotAllowed', 'The path does not accept this method.', ''),
      entry(
        'API_Timeout',
        'The request was not received completely in time, or asks for a revision that is yet to come.',
        'Try again.',
      ),
      entry(
        'API_RequestEntityTooLarge',
        'The body of the request exceeds the limit, which is 3 MiB.',
        'The message has the sizes.',
      ),
      entry('API_RequestHeaderFieldsTooLarge', 'The headers of the request exceed the limit.', ''),
      entry('API_Invalid', 'A parameter has an invalid value.', 'The message names it.'),
      entry(
        'API_ServiceUnavailable',
        'The container runtime is unavailable, or nothing listens on the port.',
        'Try again.',
      ),
      entry('API_InternalError', 'The call failed.', 'The message has the cause.'),
    ],
  },
  {
    title: 'Reaching into pods',
    intro:
      'Errors of `podd exec`, `podd attach`, `podd debug`, `podd cp`, `podd port-forward`, `podd restart` and `podd top`.',
    entries: [
      entry(
        'EXEC_FAILED',
        'A command could not be run in a container.',
        "The message is the runtime's own: most often there is no such program in the image.",
      ),
      entry(
        'ATTACH_FAILED',
        "The runtime does not give a container's own streams.",
        'The message says why; `podd exec` and `podd logs -f` do not need them.',
      ),
      entry(
        'COPY_FAILED',
        '`podd cp` could not copy a file.',
        'The message says on which side; the container needs tar.',
      ),
      entry(
        'BAD_FRAME',
        'The data on the connection of an exec, attach or port-forward violates its protocol.',
        'Use the podd of the same version as the daemon (`podd version` prints both).',
      ),
      entry(
        'PORT_REFUSED',
        'Nothing in the pod listens on the forwarded port.',
        'Check the port; the pod may not be ready yet.',
      ),
      entry(
        'PORT_FORWARD_FAILED',
        'A connection to a port of the pod could not be made.',
        "The message has the reason, or the runtime's own; without `nsenter` (util-linux) on the host the runtime connects.",
      ),
      entry(
        'PULL_STALLED',
        'An image pull was given up because it made no progress for as long as `imagePullProgressTimeout` says, or because its progress could not be read for three times as long.',
        'Check the registry and the network path to it. The pull is tried again with the back-off of pulls.',
      ),
      entry(
        'PULL_UNWANTED',
        'An image pull was cancelled because no pod waits for the image any more.',
        'Nothing: it appears in the log only.',
      ),
      entry(
        'RESTART_REFUSED',
        'The pod or container cannot be restarted: it has finished, is terminating, or does not exist.',
        'See `podd get pods`.',
      ),
      entry(
        'GARBAGE_NOT_COLLECTED',
        'Containers, or what is left of pods that no longer exist, could not be listed or removed.',
        'The message names them; podd tries again. `podd gc` does so at once.',
      ),
      entry(
        'NODE_JOB_DEADLINE',
        'A periodic job of the node exceeded its deadline.',
        'It runs again after its period; `podd status` shows its duration.',
      ),
      entry('POD_GONE', 'The pod was removed during the call.', 'Try again.'),
    ],
  },
  {
    title: 'Never shown',
    intro: "Codes that podd's parts use among themselves.",
    entries: [
      entry('STOPPED', 'podd is stopping.', ''),
      entry('CRASHED', 'An unhandled error; podd restarts. `podd status` names the crash report.', ''),
      entry('CLOSING', 'The API server is closing.', ''),
      entry('CLIENT_GONE', 'A client of the API closed its connection.', ''),
      entry('INTERRUPTED', 'Ctrl-C, or newer work on the same pod.', ''),
      entry('INTERNAL', 'A defect in podd. If you see it, please report it.', ''),
    ],
  },
]

function entry(code: ErrorCode, when: string, remedy: string): ErrorEntry {
  return { code, when, remedy }
}

/** Every code in docs/ERRORS.md. */
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

<!-- Made from tools/errors-doc.ts by \`npm run generate\`; a test holds it against the code. -->

Every error of podd has a code that is stable across versions; podd's log has it as \`err.code\`. The
reasons of pods and events (\`CrashLoopBackOff\`, \`ErrImagePull\`, \`Unhealthy\` and so on) are Kubernetes' own and are
not listed here. podd adds one reason: \`RuntimeNotReady\` means that the container runtime is unavailable, so that podd
can neither act on the pod nor report its current state.

${parts.join('\n')}`
}
