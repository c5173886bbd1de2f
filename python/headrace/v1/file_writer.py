"""tf.compat.v1.summary.FileWriter: event files, written at once."""

import os
import socket
import time
import warnings

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.locks import ForkLock
from headrace.framework import dtypes, execution
from headrace.framework.support import protos
from headrace.io import gfile, tf_record
from headrace.summary import writer
from headrace.v1 import meta_graph


def _new_path(logdir, suffix):
    """An event file of this moment that is not there yet."""
    host = socket.gethostname()
    base = os.path.join(logdir, f"events.out.tfevents.{int(time.time()):010d}.{host}")
    path, number = base + suffix, 0
    while gfile.exists(path):
        number += 1
        path = f"{base}.{number}{suffix}"
    return path


def _meta_graph_of(graph):
    if not hasattr(graph, "as_graph_def"):
        return meta_graph.export_meta_graph(graph_def=graph, collection_list=[])
    return meta_graph.export_meta_graph(graph=graph, collection_list=[])


class EventFileWriter:
    """Writes Event messages into a new file of a folder."""

    def __init__(self, logdir, max_queue=10, flush_secs=120, filename_suffix=None):
        self._logdir = os.fspath(logdir)
        self._suffix = filename_suffix or ""
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._file = None
        self._lock = ForkLock()
        self.reopen()

    def get_logdir(self):
        """The folder of the file."""
        return self._logdir

    def reopen(self):
        """Begins a new file, if it was closed."""
        with self._lock:
            if self._file is not None:
                return
            _headrace.make_folder(self._logdir)
            path = _new_path(self._logdir, self._suffix)
            self._file = tf_record.TFRecordWriter(path)
            self._waiting, self._flushed = 0, time.time()
        self.add_event(
            protos.Event(wall_time=time.time(), file_version="brain.Event:2")
        )
        self.flush()

    def add_event(self, event):
        """Writes an Event message; nothing where the file is closed."""
        with self._lock:
            if self._file is None:
                return
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


class SessionEventWriter:
    """Writes Event messages through operations of a session's graph: those of one
    session and folder write one file."""

    def __init__(self, session, logdir, max_queue, flush_secs, filename_suffix):
        self._session, self._logdir = session, os.fspath(logdir)
        self._closed = False
        with session.graph.as_default(), session.graph.name_scope("filewriter"):
            handle = raw.SummaryWriter(shared_name=f"logdir:{self._logdir}")
            suffix = writer.file_suffix(filename_suffix or ".v2")
            self._begin = raw.CreateSummaryFileWriter(
                handle, self._logdir, max_queue, int(flush_secs * 1000), suffix
            )
            self._event = raw.Placeholder(dtype=dtypes.string, shape=[])
            self._add = raw.ImportEvent(handle, self._event)
            self._flush = raw.FlushSummaryWriter(handle)
            with session.graph.control_dependencies([raw.FlushSummaryWriter(handle)]):
                self._end = raw.CloseSummaryWriter(handle)
        session.run(self._begin)

    def get_logdir(self):
        """The folder of the file."""
        return self._logdir

    def reopen(self):
        """Begins a new file, if it was closed."""
        if self._closed:
            self._closed = False
            self._session.run(self._begin)

    def add_event(self, event):
        """Writes an Event message; nothing where the file is closed."""
        if not self._closed:
            data = event.SerializeToString()
            self._session.run(self._add, feed_dict={self._event: data})

    def flush(self):
        """Lets readers of the file see all that was written."""
        if not self._closed:
            self._session.run(self._flush)

    def close(self):
        """Ends the file; nothing happens where it is closed."""
        if not self._closed:
            self._session.run(self._end)
            self._closed = True


class FileWriter:
    """Writes events into a new file of a folder, by a session where one is given.

    `graph` is written at once; `max_queue` events, or those of `flush_secs` seconds,
    wait until they are. What is written while it is closed is left out, with a warning.
    """

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
        how = (logdir, max_queue, flush_secs, filename_suffix)
        if session is not None:
            self.event_writer = SessionEventWriter(session, *how)
        else:
            self.event_writer = EventFileWriter(*how)
        self._closed = False
        self._seen_plugins, self._run_tags = set(), set()
        graph = graph_def if graph is None else graph
        if graph is not None:
            self.add_graph(graph)
            self.add_meta_graph(_meta_graph_of(graph))

    def get_logdir(self):
        """The folder of the events' file."""
        return self.event_writer.get_logdir()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    # --- the file ---

    def reopen(self):
        """Begins a new file, if it was closed."""
        self.event_writer.reopen()
        self._closed = False

    def _warn_if_closed(self):
        if self._closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop "
                "unless the FileWriter is explicitly reopened.",
                stacklevel=4,
            )

    def _add(self, step=None, **what):
        event = protos.Event(wall_time=time.time(), **what)
        if step is not None:
            event.step = int(step)
        self._warn_if_closed()
        self.event_writer.add_event(event)

    def add_event(self, event):
        """Writes an Event message."""
        self._warn_if_closed()
        self.event_writer.add_event(event)

    def flush(self):
        """Lets readers of the file see all that was written."""
        self._warn_if_closed()
        self.event_writer.flush()

    def close(self):
        """Ends the file; nothing happens where it is closed."""
        self.event_writer.close()
        self._closed = True

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
                "The passed graph must be an instance of `Graph` or the deprecated "
                "`GraphDef`"
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
        """Writes what a session's run left in a RunMetadata, under a tag; ValueError
        for a tag that was there before."""
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
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
