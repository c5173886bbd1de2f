#!/usr/bin/env bash
# tools/cluster.sh test|soak: all that several processes do together, with the real
# components that can be had here: an HDFS (tools/hdfs.sh), an S3 (tools/s3.sh), a Kerberos
# (tools/kerberos.sh), a Slurm (tools/slurm.sh), Debian's Open MPI and MPICH, TensorFlow where
# HEADRACE_TENSORFLOW_PYTHON names a Python that has it, and torchrun where it is found or
# HEADRACE_TORCHRUN names it. What cannot be had is left out, and said. Machines and cut
# links are played by network namespaces, which need root and iproute2. soak: HEADRACE_KILLS
# (20) deaths of each kind, then HEADRACE_SOAK_SECONDS (3600) of training with a death a
# minute, with another seed each time.
# Ends non-zero when any part fails, after all have run.
set -uo pipefail
cd "$(dirname "$0")/.."
way=${1:?test or soak}
failed=() left_out=()
hdfs=$PWD/.hdfs s3=$PWD/.s3 slurm=$PWD/.slurm kerberos=$PWD/.kerberos
trap 'bash tools/hdfs.sh stop "$hdfs" >/dev/null 2>&1; bash tools/s3.sh stop "$s3"
      bash tools/kerberos.sh stop "$kerberos"
      bash tools/slurm.sh stop "$slurm"' EXIT

part() {  # name command...
  local name=$1 from=$SECONDS
  shift
  echo "=== $name"
  "$@" </dev/null || failed+=("$name")
  echo "--- $name: $((SECONDS - from)) s"
}

python_tests() { bash tools/pytest.sh -q "$@"; }

# Files of several blocks.
if setting=$(HDFS_BLOCK=$((1 << 20)) bash tools/hdfs.sh start "$hdfs"); then
  eval "$setting"
else
  left_out+=("files of a real HDFS: tools/hdfs.sh did not start one, see above")
fi
if setting=$(bash tools/s3.sh start "$s3"); then
  eval "$setting"
else
  left_out+=("files of a real S3: tools/s3.sh did not start one, see above")
fi
if setting=$(bash tools/kerberos.sh start "$kerberos"); then
  eval "$setting"
else
  left_out+=("files of an HDFS that asks for Kerberos: tools/kerberos.sh did not start one")
fi
if setting=$(bash tools/slurm.sh start "$slurm"); then
  eval "$setting"
else
  left_out+=("tasks that srun starts: tools/slurm.sh did not start one, see above")
fi
command -v hdfs >/dev/null || apt-get install -y -q hdfs-cli >/dev/null 2>&1 ||
  left_out+=("files of an HDFS that another client reads: hdfs-cli cannot be installed")
for mpi in openmpi mpich; do
  command -v mpirun.$mpi >/dev/null ||
    apt-get install -y -q "$([ $mpi = mpich ] && echo mpich || echo openmpi-bin)" \
      >/dev/null 2>&1 ||
    left_out+=("tasks that mpirun of $mpi starts, and sums by its MPI: it cannot be installed")
done
command -v "${HEADRACE_TORCHRUN:-torchrun}" >/dev/null ||
  left_out+=("tasks that torchrun starts: there is none, HEADRACE_TORCHRUN names none")
[ "$(id -u)" = 0 ] && command -v ip >/dev/null && command -v tc >/dev/null ||
  left_out+=("machines with links: they need root and iproute2")
[ -n "${HEADRACE_TENSORFLOW_PYTHON:-}" ] ||
  left_out+=("clusters with TensorFlow: HEADRACE_TENSORFLOW_PYTHON names no Python")

if [ "$way" = soak ]; then
  part "deaths" env HEADRACE_KILLS="${HEADRACE_KILLS:-20}" \
    HEADRACE_SEED="${HEADRACE_SEED:-$RANDOM}" \
    bash tools/pytest.sh -q -s python/tests/distribute/test_deaths.py
  part "kills while saving to HDFS" env HEADRACE_HDFS_KILLS="${HEADRACE_HDFS_KILLS:-50}" \
    bash tools/pytest.sh -q -s python/tests/io/test_remote_files.py -k killed
  part "an hour with deaths" env HEADRACE_SOAK_SECONDS="${HEADRACE_SOAK_SECONDS:-3600}" \
    HEADRACE_SEED="${HEADRACE_SEED:-$RANDOM}" \
    bash tools/pytest.sh -q -s python/tests/distribute/test_soak.py
else
  part "tasks, servers and collectives in C++" \
    ctest --test-dir build -R '^cc_(base|distributed|command)$' --output-on-failure
  part "strategies, servers and sessions" python_tests python/tests/distribute
  part "remote files" python_tests python/tests/io/test_remote_files.py \
    python/tests/io/test_s3_files.py python/tests/io/test_kerberos.py
  part "digits on clusters" bash examples/cluster_digits.sh
  if [ -n "${HEADRACE_TEST_HDFS:-}" ]; then
    digits=$HEADRACE_TEST_HDFS/examples/digits.bin
    part "digits from HDFS" env CLUSTER_DATA="$digits" PYTHONPATH=python bash -c '
      .venv/bin/python -c "import sys, headrace as tf
tf.io.gfile.makedirs(sys.argv[1].rsplit(\"/\", 1)[0])
tf.io.gfile.copy(\"examples/data/digits.bin\", sys.argv[1], overwrite=True)" "$CLUSTER_DATA" &&
        bash examples/cluster_digits.sh'
    part "a DataNode dies while a file is read" env HEADRACE_TEST_HDFS_KILL=1 \
      bash tools/pytest.sh -q python/tests/io/test_remote_files.py -k dies
  fi
fi

[ "${#left_out[@]}" = 0 ] || printf 'LEFT OUT: %s\n' "${left_out[@]}"
if [ "${#failed[@]}" != 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
fi
echo "cluster: all parts that ran passed"
