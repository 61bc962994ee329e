# shellcheck shell=bash
# Sourced by install.sh: the daemon, with systemd and without it, and the example pod.

# The daemon's process, where no systemd keeps it.
daemon_pid() {
  local dir line
  for dir in /proc/[0-9]*; do
    line=$({ tr '\0' ' ' <"$dir/cmdline"; } 2>/dev/null) || continue
    case $line in
      /opt/podd/node/bin/node\ */opt/podd/dist/main.js\ run*)
        say "${dir#/proc/}"
        return
        ;;
    esac
  done
  return 1
}

start_daemon() { # and if one runs, the new one takes over: the pods run on
  if has_systemd; then
    systemctl restart podd.service
    return
  fi
  stop_daemon
  # Nobody else rotates it.
  if [ "$(stat -c %s "$daemon_log_file" 2>/dev/null || echo 0)" -gt $((10 << 20)) ]; then
    mv -f "$daemon_log_file" "$daemon_log_file.1"
  fi
  setsid "$opt/bin/podd" run >>"$daemon_log_file" 2>&1 </dev/null 9>&- &
}

daemon_runs() { # or is meant to: systemd may be about to restart it
  if ! has_systemd; then
    daemon_pid >/dev/null
    return
  fi
  case $(systemctl is-active podd.service) in active | activating | reloading) ;; *) return 1 ;; esac
}

stop_daemon() { # the daemon only
  local pid
  if has_systemd; then
    systemctl --quiet stop podd.service 2>/dev/null || true
    return
  fi
  pid=$(daemon_pid) || return 0
  kill "$pid" 2>/dev/null || return 0
  for _ in $(seq 300); do
    [ -e "/proc/$pid" ] || return 0
    sleep 0.1
  done
  fail "podd (process $pid) does not stop"
}

wait_for_daemon() { # until it answers, and has its runtime
  for _ in $(seq 120); do
    podd images >/dev/null 2>"$work/answer" && return
    sleep 0.5
  done
  {
    cat "$work/answer"
    say 'what podd said last:'
    if has_systemd; then journalctl --no-pager --quiet -n 15 -u podd.service; else tail -n 15 "$daemon_log_file"; fi
  } 2>/dev/null | sed 's/^/    /' >&2
  [ -z "$replaced" ] || fail 'the new podd does not come up'
  fail 'podd was installed, but does not come up' 'podd doctor says what this machine lacks.'
}

in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

placed_hello=
place_hello() { # with the first free port from 8080 on, unless there is one already, or nobody would read it
  local port=8080 file=$manifests/hello.yaml
  if [ -e "$file" ] || [ -L "$file" ] || is_moved staticPodPath; then return; fi
  if [ ! -f "$opt/busybox-image.tar" ]; then
    say 'no static busybox is to be had here, so there is no example pod'
    return
  fi
  step "Starting the example pod, $file"
  quietly podd images import "$opt/busybox-image.tar" || fail "the example's image could not be imported"
  while in_use $port && [ $port -lt 8099 ]; do port=$((port + 1)); done
  sed "s/hostPort: 8080/hostPort: $port/" "$opt/manifests/hello.yaml" >"$manifests/.hello.yaml.new"
  mv "$manifests/.hello.yaml.new" "$file"
  placed_hello=yes
}

show_hello() {
  local url
  for _ in $(seq 240); do
    if podd get pods 2>/dev/null | grep -q '^hello .* Running '; then break; fi
    sleep 0.5
  done
  if ! podd get pods 2>/dev/null | grep -q '^hello .* Running '; then
    podd get pods >&2 || true
    podd describe pod hello >&2 || true
    fail 'the example pod does not run' 'podd doctor says what this machine lacks.'
  fi
  url=http://127.0.0.1:$(sed -n 's/.*hostPort: *\([0-9]*\).*/\1/p' "$manifests/hello.yaml")/
  say '$ podd get pods'
  podd get pods
  say
  say "\$ curl $url"
  "$opt/node/bin/node" -e '
    const deadline = Date.now() + 20_000
    const get = async () => {
      try {
        process.stdout.write(await (await fetch(process.argv[1])).text())
      } catch (error) {
        if (Date.now() > deadline) throw error.cause ?? error
        await new Promise((resolve) => setTimeout(resolve, 200))
        await get()
      }
    }
    get().catch((error) => { console.error(error.message); process.exitCode = 1 })
  ' "$url" || fail "the example pod runs, but its page $url does not answer" 'Does a firewall stand between? podd doctor says more.'
}
