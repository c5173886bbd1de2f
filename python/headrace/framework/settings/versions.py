"""tf.version: what this library is compatible with."""

from headrace._load import _headrace

VERSION = "2.21.0"
HEADRACE_VERSION = _headrace.version
GIT_VERSION = "headrace-" + HEADRACE_VERSION
COMPILER_VERSION = "g++"
GRAPH_DEF_VERSION = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
