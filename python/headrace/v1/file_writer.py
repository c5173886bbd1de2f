"""tf.compat.v1.summary.FileWriter: event files, written at once."""

import os
import socket
import time

from headrace._load import _headrace
from headrace.context import stack
from headrace.context.locks import ForkLock
from headrace.framework import execution
from headrace.framework.support import protos
from headrace.io import tf_record
from headrace.v1 import meta_graph


def _new_path(logdir, suffix):
    """An event file of this moment that is not there yet."""
    host = socket.gethostname()
    base = os.path.join(logdir, f"events.out.tfevents.{int(time.time()):010d}.{host}")
    path, number = base + suffix, 0
    while os.path.exists(path):
        number += 1
        path = f"{base}.{number}{suffix}"
    return path


def _meta_graph_of(graph):
    if not hasattr(graph, "as_graph_def"):
        return meta_graph.export_meta_graph(graph_def=graph, collection_list=[])
    return meta_graph.export_meta_graph(graph=graph, collection_list=[])


class FileWriter:
    """Writes events into a new file of a folder."""

    def __init__(
        self,
        logdir,
        graph=None,
        max_queue=10,
        flush_secs=120,
        graph_def=None,
        filename_suffix=None,
        session=None,
    ):
        execution.only_in_graphs(
            "tf.summary.FileWriter is not compatible with eager execution. Use "
            "`tf.summary.create_file_writer`, or a with `Graph.as_default():` "
            "context"
        )
        if session is not None:
            raise NotImplementedError("FileWriter: session is not supported")
        self._logdir = os.fspath(logdir)
        self._suffix = filename_suffix or ""
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._file = None
        self._lock = ForkLock()
        self._seen_plugins = set()
        self.reopen()
        graph = graph_def if graph is None else graph
        if graph is not None:
            self.add_graph(graph)
            self.add_meta_graph(_meta_graph_of(graph))

    def get_logdir(self):
        """The folder of the events' file."""
        return self._logdir

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    # --- the file ---

    def reopen(self):
        """Begins a new file, if it was closed."""
        with self._lock:
            if self._file is not None:
                return
            _headrace.make_folder(self._logdir)
            path = _new_path(self._logdir, self._suffix)
            self._file = tf_record.TFRecordWriter(path)
            self._waiting, self._flushed = 0, time.time()
        self._add(file_version="brain.Event:2")
        self.flush()

    def _add(self, step=None, **what):
        event = protos.Event(wall_time=time.time(), **what)
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def add_event(self, event):
        """Writes an Event message."""
        with self._lock:
            if self._file is None:
                raise ValueError("the FileWriter is closed: reopen() begins a new file")
            self._file.write(event.SerializeToString())
            self._waiting += 1
            due = self._waiting >= self._max_queue
            due = due or time.time() >= self._flushed + self._flush_secs
        if due:
            self.flush()

    def flush(self):
        """Lets readers of the file see all that was written."""
        with self._lock:
            if self._file is not None:
                self._file.flush()
                self._waiting, self._flushed = 0, time.time()

    def close(self):
        """Ends the file; nothing happens where it is closed."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    # --- what is written ---

    def add_summary(self, summary, global_step=None):
        """Writes a Summary, a message or its bytes."""
        if isinstance(summary, bytes):
            summary = protos.Summary.FromString(summary)
        else:
            summary = protos.Summary.FromString(summary.SerializeToString())
        for value in summary.value:  # a plugin is named once a tag
            if not value.HasField("metadata"):
                continue
            if value.tag in self._seen_plugins:
                value.ClearField("metadata")
            else:
                self._seen_plugins.add(value.tag)
        self._add(global_step, summary=summary)

    def add_scalar(self, tag, value, global_step):
        """Writes one number."""
        row = protos.Summary.Value(tag=tag, simple_value=float(value))
        self._add(global_step, summary=protos.Summary(value=[row]))

    def add_session_log(self, session_log, global_step=None):
        """Writes a SessionLog: that a session began, stopped or saved."""
        self._add(global_step, session_log=session_log)

    def add_graph(self, graph, global_step=None, graph_def=None):
        """Writes a Graph, or a GraphDef."""
        graph = graph_def if graph is None else graph
        if hasattr(graph, "as_graph_def"):
            graph = graph.as_graph_def(add_shapes=True)
        if not hasattr(graph, "SerializeToString"):
            raise TypeError(
                f"The passed graph must be an instance of `Graph` or the deprecated "
                f"`GraphDef`, not {type(graph).__name__}"
            )
        self._add(global_step, graph_def=graph.SerializeToString())

    def add_meta_graph(self, meta_graph_def, global_step=None):
        """Writes a MetaGraphDef."""
        if not hasattr(meta_graph_def, "graph_def"):
            raise TypeError(
                "meta_graph_def must be type MetaGraphDef, saw type: "
                f"{type(meta_graph_def)}"
            )
        self._add(global_step, meta_graph_def=meta_graph_def.SerializeToString())

    def add_run_metadata(self, run_metadata, tag, global_step=None):
        """Writes what a session's run left in a RunMetadata, under a tag."""
        tagged = protos.TaggedRunMetadata(
            tag=tag, run_metadata=run_metadata.SerializeToString()
        )
        self._add(global_step, tagged_run_metadata=tagged)


class FileWriterCache:
    """One FileWriter a folder."""

    _writers = {}  # noqa: RUF012  (shared by design)
    _lock = ForkLock()

    @classmethod
    def get(cls, logdir):
        """The writer of a folder, made when first asked for."""
        logdir = os.fspath(logdir)
        with cls._lock:
            found = cls._writers.get(logdir)
            if found is None:
                graph = stack.default_graph()
                with graph.as_default():
                    found = cls._writers[logdir] = FileWriter(logdir, graph=graph)
            else:
                found.reopen()
            return found

    @classmethod
    def clear(cls):
        """Closes all writers and forgets them."""
        with cls._lock:
            for writer in cls._writers.values():
                writer.close()
            cls._writers.clear()
