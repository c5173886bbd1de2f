"""How long an asynchronous save of 512 MB holds a program up.

The call that begins the save, and the step behind it, which finds its variables'
memory in the writer's hands; both beside what a save takes that is waited for.
"""

import os
import shutil
import tempfile
import time

import headrace as tf

COUNT, SIZE = 8, 16 << 20  # float32
ROUNDS = 8


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    folder = tempfile.mkdtemp(prefix="async_save")
    path = os.path.join(folder, "c")
    variables = [tf.Variable(tf.random.uniform([SIZE])) for _ in range(COUNT)]
    checkpoint = tf.train.Checkpoint(v=variables)
    options = tf.train.CheckpointOptions(enable_async=True)

    def step():
        for v in variables:
            v.assign_add(tf.ones([SIZE]))

    def begin():
        checkpoint.write(path, options)

    rows = []
    try:
        for _ in range(ROUNDS):
            save = timed(lambda: checkpoint.write(path))
            alone = timed(step)
            call = timed(begin)
            behind = timed(step)
            rest = timed(checkpoint.sync)
            rows.append((save, call, alone, behind, rest))
    finally:
        shutil.rmtree(folder)
    save, call, alone, behind, rest = (min(column) for column in zip(*rows))
    print(f"save, waited for        {save * 1e3:9.2f} ms")
    print(f"call of an async save   {call * 1e3:9.2f} ms  {call / save:7.2%} of it")
    print(f"step alone              {alone * 1e3:9.2f} ms")
    print(f"step during the save    {behind * 1e3:9.2f} ms")
    print(f"sync behind it          {rest * 1e3:9.2f} ms")


if __name__ == "__main__":
    main()
