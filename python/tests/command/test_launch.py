"""headrace run -n: the tasks of a cluster."""

import os

import pytest
from command_line import program

PROGRAM = """
import json, os, sys, time
import headrace as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.distribute.Server(
    tf.train.ClusterSpec(config["cluster"]), job_name=job, task_index=index
)
if job == "ps":
    server.join()
tf.compat.v1.disable_eager_execution()
with tf.device("/job:ps/task:0"):
    count = tf.compat.v1.get_variable("count", [], initializer=tf.zeros_initializer())
add = count.assign_add(1.0, use_locking=True)
with tf.compat.v1.train.MonitoredTrainingSession(
    server.target, is_chief=index == 0
) as session:
    session.run(add)
    end = time.time() + 60
    while session.run(count) < 2 and time.time() < end:
        time.sleep(0.01)
    print(job, index, session.run(count), sys.argv[1:])
"""


def lines(text, name):
    begin = f"[{name}] "
    return [x.removeprefix(begin) for x in text.splitlines() if x.startswith(begin)]


def test_tasks_find_each_other(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    done = program("run", "-n", 2, "--ps", 1, path, "--steps", 3, text=True)
    assert done.returncode == 0, done.stderr
    for index in range(2):
        assert lines(done.stdout, f"worker {index}")[-1] == (
            f"worker {index} 2.0 ['--steps', '3']"
        )


def test_modules_and_logs(tmp_path):
    (tmp_path / "named.py").write_text(
        "import os, sys; print(sys.argv[1:]); print(os.environ['TF_CONFIG'])"
    )
    logs = tmp_path / "logs"
    options = ("-n", 2, "-m", "--logs", logs)
    done = program("run", *options, "named", "-x", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    text = (logs / "worker-1.log").read_text()
    assert text.startswith("['-x']\n")
    assert '"index": 1' in text


def test_tasks_have_the_environment(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "import os; print(os.environ['OF_THE_USER'], len(os.environ['PATH']))"
    )
    environment = {**os.environ, "OF_THE_USER": "one"}
    done = program("run", "-n", 1, path, text=True, env=environment)
    assert lines(done.stdout, "worker 0") == [f"one {len(os.environ['PATH'])}"]


def test_programs_have_their_own_help(tmp_path, line):
    path = tmp_path / "own.py"
    path.write_text("import sys; print(sys.argv[1:])")
    done = program("run", "-n", 1, path, "--help", text=True)
    assert lines(done.stdout, "worker 0") == ["['--help']"]
    assert line("run", "-n", 1, "--help").startswith("Usage: headrace run")


def test_calls_that_cannot_be(line):
    assert "the program to start is missing" in line.fails("run", "-n", 2, code=2)
    assert "--workers" in line.fails("run", "-n", 0, "a.py", code=2)
    assert "/nowhere/a" in line.fails("run", "-n", 1, "/nowhere/a")


def test_its_own_exit_code(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text(
        "import os, sys; sys.exit('\"index\": 1' in os.environ['TF_CONFIG'] and 9)"
    )
    done = program("run", "--workers=2", path, text=True)
    assert done.returncode == 9
    assert "worker 1 ended with 9; the other tasks are ended" in done.stderr


COORDINATED = """
import json, os, sys
import headrace as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
if job != "chief":
    tf.distribute.Server(
        tf.train.ClusterSpec(config["cluster"]), job_name=job, task_index=index
    ).join()
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    v = tf.Variable(0.0)
for _ in range(4):
    coordinator.schedule(tf.function(lambda: v.assign_add(1.0)))
coordinator.join()
print(v.numpy())
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 7])
def test_workers_of_a_coordinator_end_with_it(tmp_path, code):
    path = tmp_path / "train.py"
    path.write_text(COORDINATED)
    done = program("run", "--chief", "-n", 2, "--ps", 1, path, code, text=True)
    assert done.returncode == code, done.stderr
    assert lines(done.stdout, "chief 0") == ["4.0"]
