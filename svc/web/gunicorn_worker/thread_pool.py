"""The threads of a listener: the one that became free last gets the next request, and idle ones end.

A thread keeps a connection to the database, with its statements and pages 1.5 MB. The executor of
the standard library wakes its threads in turn and keeps each for ever: a crowd would leave as
many connections as it had threads, all kept warm by the next single client.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from svc import heaps

IDLE_S = 10.0  # then a thread ends; the last one stays


class Job(NamedTuple):
    """A call that a thread makes, and where its result goes."""

    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class ThreadPool:
    """As much of an executor as gunicorn uses, with a thread for each job that is under way.

    `at_end` is called in each thread that ends.
    """

    def __init__(self, at_end: Callable[[], None], idle_s: float = IDLE_S) -> None:
        self.at_end, self.idle_s = at_end, idle_s
        self.lock = threading.Lock()
        self.count = 0
        self.idle: list[_Thread] = []  # the one that became free last is the last
        self.waiting: deque[Job] = deque()  # while the system allows no more threads

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a thread call it; RuntimeError when there is none, and the system allows none."""
        job = Job(Future(), function, arguments)
        with self.lock:
            if self.idle:
                self.idle.pop().take(job)
                return job.future
            try:
                _Thread(self, job).start()
                self.count += 1
            except RuntimeError:
                if not self.count:
                    raise
                self.waiting.append(job)
        return job.future

    def shutdown(self, wait: bool = True) -> None:
        """As an executor's, but nothing: the threads end with the process."""

    def free(self, thread: _Thread) -> None:
        """The thread has done its job: it gets one that waits, or is idle."""
        with self.lock:
            if self.waiting:
                thread.take(self.waiting.popleft())
            else:
                self.idle.append(thread)

    def leave(self, thread: _Thread) -> bool:
        """Whether a thread that was idle for long ends; not the last one, nor one that got a job just now."""
        with self.lock:
            if self.count == 1 or thread not in self.idle:
                return False
            self.idle.remove(thread)
            self.count -= 1
            return True


class _Thread(threading.Thread):
    """One of the pool's."""

    def __init__(self, pool: ThreadPool, job: Job) -> None:
        super().__init__(name="request", daemon=True)
        self.pool = pool
        self.job = job
        self.has_job = threading.Lock()  # locked while there is none

    def take(self, job: Job) -> None:
        """Give the thread, which is idle, a job."""
        self.job = job
        self.has_job.release()

    def run(self) -> None:
        """Do one job after the other."""
        while self.has_job.acquire(timeout=self.pool.idle_s) or self._stay():
            self._do()

    def _stay(self) -> bool:
        """After a long time without a job: True when there is one again, False when the thread ends."""
        ends = self.pool.leave(self)
        if ends:
            self.pool.at_end()
        if len(self.pool.idle) <= 1:
            heaps.give_back()
        return not ends and self.has_job.acquire()

    def _do(self) -> None:
        """The next job; its result comes when the thread is free for another."""
        job = self.job
        del self.job  # nothing of it stays with an idle thread
        try:
            result = job.function(*job.arguments)
        except BaseException as error:  # noqa: BLE001  as executors do: whoever looks at the result gets it
            self.pool.free(self)
            job.future.set_exception(error)
        else:
            self.pool.free(self)
            job.future.set_result(result)
