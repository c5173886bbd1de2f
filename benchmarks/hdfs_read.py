"""A file of HDFS read by turns here and by curl: the ratio of the rates.

eval "$(tools/hdfs.sh start)"; python benchmarks/hdfs_read.py [MEGABYTES [TURNS]]
"""

import os
import statistics
import subprocess
import sys
import time

import headrace as tf

ROOT, WEB = os.environ["HEADRACE_TEST_HDFS"], os.environ["HEADRACE_WEBHDFS"]
CHUNK = 1 << 20
TO = os.environ.get("CURL_OUTPUT", "/dev/null")


def whole(path):
    return int(tf.strings.length(tf.io.read_file(path)))


def chunks(path):
    total = 0
    with tf.io.gfile.GFile(path, "rb") as f:
        while part := f.read(CHUNK):
            total += len(part)
    return total


def records(path):
    return sum(len(r.numpy()) for r in tf.data.FixedLengthRecordDataset(path, CHUNK))


def curl(path):
    url = f"http://{WEB}/webhdfs/v1/{path.rsplit('/', 1)[1]}?op=OPEN"
    subprocess.run(["curl", "-sfL", "-o", TO, url], check=True)


def seconds(read, path):
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    path = f"{ROOT}/benchmark-{os.getpid()}"
    with tf.io.gfile.GFile(path, "wb") as f:
        for _ in range(size):
            f.write(os.urandom(CHUNK))
    ways = (whole, chunks, records)
    times = {way: [] for way in (curl, *ways)}
    for _ in range(turns):
        for way, found in times.items():
            found.append(seconds(way, path))
    tf.io.gfile.remove(path)
    for way in ways:
        ratios = [c / w for c, w in zip(times[curl], times[way], strict=True)]
        print(f"{way.__name__:8} {statistics.median(ratios):.2f} of curl's rate")


if __name__ == "__main__":
    main()
