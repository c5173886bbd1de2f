#!/usr/bin/env bash
# tools/slurm.sh start|stop [FOLDER]: a real Slurm of this machine for tests: Debian's
# slurmctld and munge, and two nodes, slurmd processes whose names are two addresses of the
# loopback, so that tasks find each other by them. It needs root. FOLDER (./.slurm) keeps
# what is written.
#   SLURM_PORT=6917      slurmctld's; the nodes have those behind it
# "start" ends with a line that sets what srun asks for: eval "$(tools/slurm.sh start)".
set -euo pipefail
command=${1:-}
folder=$(mkdir -p "${2:-.slurm}" && cd "${2:-.slurm}" && pwd)
port=${SLURM_PORT:-6917}

fail() { echo "slurm: $*" >&2; exit 1; }

stop() {
  for name in slurmd-127.0.0.1 slurmd-127.0.0.2 slurmctld munged; do
    [ -f "$folder/$name.pid" ] || continue
    kill "$(cat "$folder/$name.pid")" 2>/dev/null || true
    rm -f "$folder/$name.pid"
  done
}

install() {
  command -v slurmctld slurmd srun munged >/dev/null && return
  echo "slurm: installing Debian's slurmctld, slurmd, slurm-client and munge" >&2
  { apt-get install -y -q slurmctld slurmd slurm-client munge ||
    { apt-get update -q && apt-get install -y -q slurmctld slurmd slurm-client munge; }
  } >"$folder/install.log" 2>&1 || fail "cannot be installed: see $folder/install.log"
}

configure() {
  local host processors
  host=$(hostname -s)
  processors=$(nproc)
  mkdir -p "$folder"/state "$folder"/spool-127.0.0.{1,2}
  cat >"$folder/slurm.conf" <<END
ClusterName=tests
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
SlurmdTimeout=60
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
NodeName=127.0.0.1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=$processors
NodeName=127.0.0.2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=$processors
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:8 State=UP
END
}

start() {
  [ "$(id -u)" = 0 ] || fail "it needs root"
  install
  stop
  configure
  export SLURM_CONF=$folder/slurm.conf
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 400 "$folder/munge.key"
  munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" \
    --seed-file="$folder/munged.seed" >&2
  slurmctld -i >&2
  local i
  for i in 1 2; do
    slurmd -N "127.0.0.$i" >&2
  done
  for i in $(seq 100); do
    if [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; then
      echo "export SLURM_CONF=$folder/slurm.conf"
      return
    fi
    sleep 0.3
  done
  stop
  fail "its nodes did not come: see $folder/*.log"
}

case $command in
  start) start ;;
  stop) stop ;;
  *) fail "start or stop?" ;;
esac
