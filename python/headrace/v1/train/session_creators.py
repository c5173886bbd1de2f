"""What makes the sessions of monitored sessions."""

from headrace.context import stack
from headrace.v1.train.scaffold import Scaffold
from headrace.v1.train.session_manager import SessionManager


class SessionCreator:
    """Makes a session whenever one is needed."""

    def create_session(self):
        """A new session with its variables ready. Subclasses define it."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions that are restored from a checkpoint, or initialized."""

    def __init__(
        self,
        scaffold=None,
        master="",
        config=None,
        checkpoint_dir=None,
        checkpoint_filename_with_path=None,
    ):
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._scaffold = scaffold or Scaffold()
        self._session_manager = None
        self._master = master
        self._config = config

    def create_session(self):
        """A session restored from the newest checkpoint,
        or initialized where none is."""
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = _manager_of(self._scaffold)
        return self._session_manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions whose variables the chief initializes."""

    def __init__(self, scaffold=None, master="", config=None, max_wait_secs=30 * 60):
        self._scaffold = scaffold or Scaffold()
        self._session_manager = None
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs

    def create_session(self):
        """A session, once the variables are ready; DeadlineExceededError after
        max_wait_secs.
        """
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = _manager_of(self._scaffold)
        return self._session_manager.wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


def _manager_of(scaffold):
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=stack.default_graph(),
    )
