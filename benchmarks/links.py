"""16 MB over links between machines, which network namespaces play (root, ip, tc, iperf3):
a sum over all, a variable pulled from a parameter server by all other machines at once, and
one pushed, as shares of what iperf3 gets over the same link, by turns. A sum over P
machines moves 2(P - 1)/P of its bytes over each link each way. Medians, and the best.

    links.py [--nodes N ...] [--links RATE,SECONDS ...] [--torch PYTHON] [--turns N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, f"{HERE}/../python/tests/distribute"]
import collective  # noqa: E402
from namespaces import Network  # noqa: E402

SIZE = 16 << 20
PORT = 5301
# Of a turn.
REPEATS = 3

# The first process is the server, which all others pull from or push to at once.
_OF_SERVER = """
import os, sys
import headrace as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
index, addresses = int(sys.argv[1]), sys.argv[2].split(",")
cluster = {"ps": addresses[:1], "worker": addresses[1:]}
job, task = ("ps", 0) if index == 0 else ("worker", index - 1)
server = tf.distribute.Server(cluster, job, task)
count = SIZE // 4
with v1.device("/job:ps/task:0"):
    v = v1.get_variable("v", [count], initializer=v1.zeros_initializer())
with v1.device(f"/job:worker/task:{task}"):
    own = v1.get_variable("own", [count], initializer=v1.ones_initializer())
    pull = tf.reduce_max(tf.identity(v.read_value())[:1]).op
    value = own.read_value()
with v1.device("/job:ps/task:0"):
    push = v.assign_add(value, read_value=False)
    push = getattr(push, "op", push)
if index:
    session = v1.Session(server.target)
    session.run([v.initializer, own.initializer])
def reducer(size):
    def reduced():
        if index:
            session.run(WHAT)
        return len(addresses)
    return reduced
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--links", nargs="+", default=["1gbit,0", "100mbit,0.005"])
    parser.add_argument("--torch")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--only", nargs="+", help="some of the rows")
    return parser.parse_args()


def bytes_a_second(network, seconds):
    """What iperf3 gets from node 1 to node 0."""
    at = ["-p", str(PORT - 1)]
    server = subprocess.Popen(
        network.on(0, ["iperf3", "-s", "-1", "--forceflush", *at]),
        stdout=subprocess.PIPE,
        text=True,
    )
    while "listening" not in server.stdout.readline():
        pass
    asked = ["iperf3", "-c", network.address(0), "-t", str(seconds), "-J", *at]
    done = subprocess.run(network.on(1, asked), stdout=subprocess.PIPE, check=True)
    server.communicate()
    return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 8


def on(network):
    """Measured processes go before others of this machine."""
    environment = [
        "env",
        "AUTOGRAPH_VERBOSITY=0",
        "GLOO_SOCKET_IFNAME=eth0",
        f"PYTHONPATH={HERE}/../python",
    ]
    return lambda i, c: network.on(i, ["nice", "-n", "-10", *environment, *c])


def begin(network, nodes, given):
    """By name: a group, and how many bytes it moves over the busiest link one way."""
    ring = 2 * (nodes - 1) / nodes * SIZE
    kinds = {
        "all-reduce": (
            sys.executable,
            collective.OF_STRATEGY.replace("MODULE", "headrace"),
            ring,
        )
    }
    for what in ("pull", "push"):
        program = _OF_SERVER.replace("SIZE", str(SIZE)).replace("WHAT", what)
        kinds[what] = (sys.executable, program, SIZE * (nodes - 1))
    if given.torch:
        kinds["Gloo's all-reduce"] = (given.torch, collective.OF_TORCH, ring)
    groups = {}
    for i, (name, (python, program, moved)) in enumerate(kinds.items()):
        if given.only and name not in given.only:
            continue
        addresses = [f"{network.address(n)}:{PORT + i}" for n in range(nodes)]
        group = collective.Group(python, program, addresses, on(network))
        group.run(SIZE, 1)
        groups[name] = (group, moved)
    return groups


def measure(nodes, rate, delay, given):
    with Network(nodes, rate=rate, delay=delay) as network:
        groups = begin(network, nodes, given)
        shares = {name: [] for name in groups}
        rates = []
        for _ in range(given.turns):
            rates.append(bytes_a_second(network, 3))
            for name, (group, moved) in groups.items():
                for _ in range(REPEATS):
                    took = max(t for (t,) in group.run(SIZE, 1))
                    shares[name].append(moved / took / rates[-1])
        for group, _ in groups.values():
            group.stop()
    print(
        f"{nodes} machines, {rate}, {delay * 1e3:g} ms:"
        f" iperf3 {statistics.median(rates) * 8e-6:.0f} Mbit/s"
    )
    for name, found in shares.items():
        print(
            f"  {name:18} {statistics.median(found):.2f} of it"
            f" (best {max(found):.2f}, worst {min(found):.2f})",
            flush=True,
        )


def main():
    given = options()
    for link in given.links:
        rate, delay = link.split(",")
        for nodes in given.nodes:
            measure(nodes, rate, float(delay), given)


if __name__ == "__main__":
    main()
