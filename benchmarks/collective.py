"""All-reduce of 4 B, 64 KB, 4 MB and 64 MB by two processes on loopback: this package's
MultiWorkerMirroredStrategy beside, where their interpreters are given, TensorFlow's RING and
PyTorch's Gloo. Medians, by turns. With TensorFlow also TensorFlow's messages between two
processes of this package (`rings`) and between one of each (`mixed`).

    collective.py [--tensorflow PYTHON] [--torch PYTHON] [--turns N]
"""

import argparse
import socket
import statistics
import subprocess
import sys

SIZES = (4, 64 << 10, 4 << 20, 64 << 20)
REPEATS = {4: 60, 64 << 10: 60, 4 << 20: 20, 64 << 20: 6}

OF_STRATEGY = """
import json, os, sys
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": sys.argv[2].split(",")},
    "task": {"type": "worker", "index": int(sys.argv[1])}})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import MODULE as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING))
def reducer(size):
    x = tf.ones([size // 4])
    @tf.function
    def reduced():
        def of_replica():
            context = tf.distribute.get_replica_context()
            return tf.reduce_max(context.all_reduce("SUM", x)[:1])
        return strategy.run(of_replica)
    return lambda: reduced().numpy()
"""
OF_RINGS = (
    """
import os
os.environ["HEADRACE_TENSORFLOW_PEERS"] = "1"
"""
    + OF_STRATEGY
)
OF_TORCH = """
import os, sys
import torch
import torch.distributed as dist
host, port = sys.argv[2].split(",")[0].split(":")
os.environ.update(MASTER_ADDR=host, MASTER_PORT=port)
size = len(sys.argv[2].split(","))
dist.init_process_group("gloo", rank=int(sys.argv[1]), world_size=size)
def reducer(size):
    x = torch.ones(size // 4)
    def reduced():
        y = x.clone()
        dist.all_reduce(y)
        return float(y[0])
    return reduced
"""
LOOP = """
import time
reducers = {}
print("ready", flush=True)
for line in sys.stdin:
    size, repeats = map(int, line.split())
    if size not in reducers:
        reducers[size] = reducer(size)
        for _ in range(3):
            assert reducers[size]() == sys.argv[2].count(",") + 1
    took = []
    for _ in range(repeats):
        since = time.perf_counter()
        reducers[size]()
        took.append(time.perf_counter() - since)
    print(" ".join(map(str, took)), flush=True)
os._exit(0)
"""


def addresses_here(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    found = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return found


class Group:
    """A process for each address, which reduces when it is told. `on` is what runs the
    command of a process elsewhere."""

    def __init__(self, python, program, addresses, on=lambda i, command: command):
        self._start([(python, program)] * len(addresses), addresses, on)

    @classmethod
    def of(cls, programs, addresses):
        """A group of the processes of (interpreter, program) pairs."""
        made = cls.__new__(cls)
        made._start(programs, addresses, lambda i, command: command)
        return made

    def _start(self, programs, addresses, on):
        self.processes = [
            subprocess.Popen(
                on(i, [python, "-c", program + LOOP, str(i), ",".join(addresses)]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for i, (python, program) in enumerate(programs)
        ]
        for p in self.processes:
            while (line := p.stdout.readline()) != "ready\n":
                assert line, "a process ended"

    def run(self, size, repeats):
        """The seconds of each repeat, by process."""
        for p in self.processes:
            p.stdin.write(f"{size} {repeats}\n")
            p.stdin.flush()
        lines = [p.stdout.readline() for p in self.processes]
        return [[float(t) for t in line.split()] for line in lines]

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow")
    parser.add_argument("--torch")
    parser.add_argument("--turns", type=int, default=4)
    given = parser.parse_args()

    def pair(python, program):
        return Group(python, program, addresses_here(2))

    pairs = {
        "headrace": pair(sys.executable, OF_STRATEGY.replace("MODULE", "headrace"))
    }
    if given.tensorflow:
        program = OF_STRATEGY.replace("MODULE", "tensorflow")
        pairs["tensorflow"] = pair(given.tensorflow, program)
        ours = sys.executable, OF_RINGS.replace("MODULE", "headrace")
        pairs["rings"] = Group.of([ours, ours], addresses_here(2))
        theirs = given.tensorflow, program
        pairs["mixed"] = Group.of([theirs, ours], addresses_here(2))
    if given.torch:
        pairs["torch"] = pair(given.torch, OF_TORCH)
    took = {(name, size): [] for name in pairs for size in SIZES}
    try:
        for _ in range(given.turns):
            for size in SIZES:
                for name, pair in pairs.items():
                    took[name, size] += pair.run(size, REPEATS[size])[0]
    finally:
        for pair in pairs.values():
            pair.stop()
    for size in SIZES:
        own = took["headrace", size]
        text = f"{size:>9} B  headrace {statistics.median(own) * 1e3:.3f} ms"
        text += f" (best {min(own) * 1e3:.3f})"
        for name in list(pairs)[1:]:
            other = took[name, size]
            ratio = statistics.median(own) / statistics.median(other)
            best = min(own) / min(other)
            text += f"   / {name} {ratio:.2f} (best {best:.2f})"
        print(text, flush=True)


if __name__ == "__main__":
    main()
