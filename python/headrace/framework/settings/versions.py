"""tf.version: what this library is compatible with."""

VERSION = "2.21.0"
GIT_VERSION = "headrace-0.1.0"
COMPILER_VERSION = "g++"
GRAPH_DEF_VERSION = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
