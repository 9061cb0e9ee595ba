import signal
from pathlib import PurePosixPath

import pytest

# What workers (pytest -n) must know of tests of ranks: those of a file share its jobs, so one
# worker runs all of them. But in these every test starts a job of its own,
PER_TEST = {
    "test_compared_script.py",
    "test_elastic.py",
    "test_exit.py",
    "test_fatal.py",
    "test_killed_peer.py",
    "test_libraries.py",
    "test_restart.py",
    "test_torch_link.py",
    "test_profiled_script.py",
    "test_second_link_failures.py",
}
# and these look at the jobs of another file.
JOBS_OF = {"test_replicas.py": "test_parity.py"}
# Of those that start a job each, these make hosts, whose names are the same in each of them.
HOSTS = ("[link_stalls]", "[link_lost]")


def pytest_configure():
    """Tests interrupt what they start, and whoever starts the tests may ignore interrupts: a shell
    does so for what it runs in the background, and children inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def together(nodeid):
    """The name of the tests that one worker has to run, of which this is one."""
    path = PurePosixPath(nodeid.split("::", 1)[0])
    if path.name in PER_TEST:
        return "hosts" if nodeid.endswith(HOSTS) else nodeid
    return str(path.with_name(JOBS_OF.get(path.name, path.name)))


@pytest.hookimpl(optionalhook=True)  # a machine for a GPU check need not have xdist
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadfile` as above."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByJob(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return together(nodeid)

    return ByJob(config, log)
