"""Threads of a listener: the one that became free last gets the next request, and idle ones end.

A thread keeps a connection to the database: 1.5 MB with its statements and pages. The standard
library's executor wakes its threads in turn and keeps each for ever. A crowd would leave as many
connections as it had threads, and one later client would keep all of them in use.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from svc import heaps

IDLE_S = 10.0  # after this time without a job a thread ends; the last one stays


class Job(NamedTuple):
    """A call for a thread to make, and the future of its result."""

    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class ThreadPool:
    """The part of an executor that gunicorn uses, with a thread for each running job.

    `at_end` is called in each thread that ends.
    """

    def __init__(self, at_end: Callable[[], None], idle_s: float = IDLE_S) -> None:
        self.at_end, self.idle_s = at_end, idle_s
        self.lock = threading.Lock()
        self.count = 0
        self.idle: list[_Thread] = []  # in the order in which they became free
        self.waiting: deque[Job] = deque()  # jobs, while the system allows no more threads

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call the function in a thread; RuntimeError if there is no thread and none can be started."""
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
        """Do nothing, unlike an executor: the threads end with the process."""

    def free(self, thread: _Thread) -> None:
        """Give a thread that has done its job a waiting one, or make it idle."""
        with self.lock:
            if self.waiting:
                thread.take(self.waiting.popleft())
            else:
                self.idle.append(thread)

    def leave(self, thread: _Thread) -> bool:
        """Whether a thread idle for IDLE_S ends: not the last one, nor one that has just got a job."""
        with self.lock:
            if self.count == 1 or thread not in self.idle:
                return False
            self.idle.remove(thread)
            self.count -= 1
            return True


class _Thread(threading.Thread):
    """A thread of the pool."""

    def __init__(self, pool: ThreadPool, job: Job) -> None:
        super().__init__(name="request", daemon=True)
        self.pool = pool
        self.job = job
        self.has_job = threading.Lock()  # locked while there is no job

    def take(self, job: Job) -> None:
        """Give this idle thread a job."""
        self.job = job
        self.has_job.release()

    def run(self) -> None:
        """Do one job after another."""
        while self.has_job.acquire(timeout=self.pool.idle_s) or self._stay():
            self._do()

    def _stay(self) -> bool:
        """After IDLE_S without a job: True once there is one again, False if the thread ends."""
        ends = self.pool.leave(self)
        if ends:
            self.pool.at_end()
        if len(self.pool.idle) <= 1:
            heaps.give_back()
        return not ends and self.has_job.acquire()

    def _do(self) -> None:
        """Do the job; its result is set once the thread is free for another."""
        job = self.job
        del self.job  # an idle thread keeps no reference to it
        try:
            result = job.function(*job.arguments)
        except BaseException as error:  # noqa: BLE001  as executors do: reading the result raises it
            self.pool.free(self)
            job.future.set_exception(error)
        else:
            self.pool.free(self)
            job.future.set_result(result)
