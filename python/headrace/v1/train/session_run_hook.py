"""What hooks of monitored sessions are, and what they are given."""

import collections

from headrace.context.properties import read_only
from headrace.framework.support import signatures


class SessionRunArgs(
    signatures.tuple_of("SessionRunArgs", "fetches, feed_dict=None, options=None")
):
    """What a hook adds to the next run."""


class SessionRunValues(
    collections.namedtuple("SessionRunValues", ["results", "options", "run_metadata"])
):
    """What a run gave for a hook's SessionRunArgs."""


class SessionRunContext:
    """The run under way; a hook can ask to stop after it."""

    def __init__(self, original_args, session):
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    original_args = read_only(
        "_original_args", "The SessionRunArgs that the caller of run() gave."
    )
    session = read_only(
        "_session", "The session that runs, without the hooks around it."
    )
    stop_requested = read_only("_stop_requested", "Whether a hook has asked to stop.")

    def request_stop(self):
        """Asks to stop after this run: should_stop() is True from then on."""
        self._stop_requested = True


class SessionRunHook:
    """Called around every run of a monitored session."""

    def begin(self):
        """Before the session is made; the graph may still grow."""

    def after_create_session(self, session, coord):
        """After a session was made; the graph is final."""

    def before_run(self, run_context):
        """Before each run; what it returns is run too."""
        return None

    def after_run(self, run_context, run_values):
        """After each run."""

    def end(self, session):
        """At the end of the session, unless an error ended it."""
