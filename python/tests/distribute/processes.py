"""Real processes on loopback: the tasks of a cluster, for its tests."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

# A task: it says when it is there, and joins. What a shell runs in the background has
# SIGINT ignored, and so its tasks would.
TASK = """
import json, signal, sys
import headrace as tf
signal.signal(signal.SIGINT, signal.default_int_handler)
job, index, cluster = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
server = tf.distribute.Server(cluster, job_name=job, task_index=index)
print("ready", flush=True)
server.join()
"""
# HEADRACE_TENSORFLOW_PYTHON names a Python that has TensorFlow 2.21.
PYTHONS = {
    "headrace": sys.executable,
    "tensorflow": os.environ.get("HEADRACE_TENSORFLOW_PYTHON"),
}
_SOON = 120  # seconds: a busy machine takes long to import


def free_ports(count):
    """Ports that nobody listens at just now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """The addresses of so many tasks a job, and the processes that were started."""

    def __init__(self, **jobs):
        ports = iter(free_ports(sum(jobs.values())))
        self.spec = {
            job: [f"127.0.0.1:{next(ports)}" for _ in range(count)]
            for job, count in jobs.items()
        }
        self.processes = {}

    def target(self, job, index=0):
        return f"grpc://{self.spec[job][index]}"

    def begin(
        self, job, index=0, python=sys.executable, program=TASK, given=(), stdin=None
    ):
        """Starts a task, and does not wait for it. The program's arguments are its job, its
        number, the cluster and what is `given`, the last two in JSON."""
        command = [python, "-c", program, job, str(index)]
        command += map(json.dumps, (self.spec, *given))
        self.processes[job, index] = subprocess.Popen(
            self.command(job, index, command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            text=True,
        )

    def command(self, job, index, command):
        """What runs a task's command: a subclass may have it run elsewhere."""
        return command

    def await_ready(self, job, index=0):
        process = self.processes[job, index]
        # Others' libraries may say something before.
        while (line := process.stdout.readline()) != "ready\n":
            assert line, process.wait(_SOON)

    def start(self, job, index=0):
        self.begin(job, index)
        self.await_ready(job, index)

    def tasks(self):
        """The (job, number) of all."""
        return [(job, i) for job, all in self.spec.items() for i in range(len(all))]

    def start_all(self):
        for task in self.tasks():
            self.begin(*task)
        for task in self.tasks():
            self.await_ready(*task)
        return self

    def kill(self, job, index=0):
        process = self.processes.pop((job, index))
        process.kill()
        process.wait()

    def seconds_to_end(self, job, index=0, by=signal.SIGTERM):
        """How long a task takes to end when it is sent a signal."""
        process = self.processes.pop((job, index))
        since = time.monotonic()
        process.send_signal(by)
        process.wait(_SOON)
        return time.monotonic() - since

    def stop(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes.clear()
