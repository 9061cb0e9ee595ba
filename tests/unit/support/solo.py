"""Ranks without a job: what Agreement offers, for one rank alone or for several threads."""

from __future__ import annotations

import threading


class Solo:
    """The only rank."""

    rank = 0
    deciding = True

    def collect(self, text):
        return [text]

    def share(self, text):
        return text

    def gather(self, numbers):
        return [list(numbers)]

    def union(self, flags):
        return list(flags)

    def require_equal(self, facts):
        """It agrees with itself."""


class Meeting:
    """Several ranks as threads; what they bring is exchanged at a barrier."""

    def __init__(self, size):
        self.size = size
        self._barrier = threading.Barrier(size, timeout=20)
        self._brought = [None] * size

    def exchange(self, rank, text):
        self._brought[rank] = text
        self._barrier.wait()
        everyone = list(self._brought)
        self._barrier.wait()
        return everyone

    def abort(self):
        self._barrier.abort()


class NamedParameter:
    """One of them."""

    def __init__(self, meeting, rank):
        self._meeting = meeting
        self.rank = rank
        self.deciding = rank == 0

    def collect(self, text):
        return self._meeting.exchange(self.rank, text)

    def share(self, text):
        return self._meeting.exchange(self.rank, text)[0]

    def gather(self, numbers):
        return self._meeting.exchange(self.rank, list(numbers))

    def union(self, flags):
        return [any(of_ranks) for of_ranks in zip(*self.gather(flags), strict=True)]

    def require_equal(self, facts):
        everyone = self._meeting.exchange(self.rank, facts)
        assert all(theirs == facts for theirs in everyone)


def as_ranks(size, function):
    """What function(agreement) returns on each rank; raises what one of them raised."""
    meeting, results, errors = Meeting(size), [None] * size, []

    def run(rank):
        try:
            results[rank] = function(NamedParameter(meeting, rank))
        except Exception as error:  # noqa: BLE001  (shown by the test)
            errors.append(error)
            meeting.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return results
