"""What makes the sessions of monitored sessions."""

from headrace.context import stack
from headrace.framework.support import signatures
from headrace.v1.train.scaffold import Scaffold
from headrace.v1.train.session_manager import SessionManager


class SessionCreator:
    """Makes a session whenever one is needed."""

    def create_session(self):
        """A new session with its variables ready. Subclasses define it."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class _OfScaffold(SessionCreator):
    """Makes sessions with the operations of a scaffold."""

    def _begin(self):
        self._scaffold = self._scaffold or Scaffold()
        self._session_manager = self._graph = None

    def _manager(self):
        """What makes the sessions, once the graph is final. A session that takes the
        place of a lost one is of the first one's graph, also where the program has left
        that graph's scope by then; TensorFlow's fails there.
        """
        self._graph = self._graph or stack.default_graph()
        with self._graph.as_default():
            self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = SessionManager(
                local_init_op=self._scaffold.local_init_op,
                local_init_feed_dict=self._scaffold.local_init_feed_dict,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=self._graph,
            )
        return self._session_manager


class ChiefSessionCreator(_OfScaffold):
    """Makes sessions that are restored from a checkpoint, or initialized."""

    @signatures.keeping(
        "scaffold=None, master='', config=None, checkpoint_dir=None, "
        "checkpoint_filename_with_path=None"
    )
    def __init__(self):
        self._begin()

    def create_session(self):
        """A session restored from the newest checkpoint,
        or initialized where none is."""
        return self._manager().prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(_OfScaffold):
    """Makes sessions whose variables the chief initializes."""

    @signatures.keeping("scaffold=None, master='', config=None, max_wait_secs=1800")
    def __init__(self):
        self._begin()

    def create_session(self):
        """A session, once the variables are ready; DeadlineExceededError after
        max_wait_secs.
        """
        return self._manager().wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )
