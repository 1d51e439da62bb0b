"""Programs that are measured in turn: child processes that give a time for every line they read."""

import json
import os
import select
import signal
import statistics
import subprocess
import time


class ProgramFailed(Exception):
    pass


class Missing(Exception):
    """What a program was built without."""


class Program:
    """Started at once; `about` is its first line. Its words go to a log."""

    def __init__(self, label, command, environment, log, seconds=900):
        self.label, self.samples, self.pending = label, [], b""
        self.log = open(log, "a")
        print("$", *command, file=self.log, flush=True)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, env=environment, start_new_session=True)
        try:
            self.about = self.read(seconds)
        except BaseException:
            self.close()
            raise
        if "missing" in self.about:
            self.close()
            raise Missing(self.about["missing"])

    def read(self, seconds):
        """The next line that is an object; others, such as mpiexec's, go to the log."""
        end = time.monotonic() + seconds
        while True:
            line, found, rest = self.pending.partition(b"\n")
            if found:
                self.pending = rest
                if line.startswith(b"{"):
                    return json.loads(line)
                print(line.decode(errors="replace"), file=self.log, flush=True)
                continue
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise ProgramFailed(f"no answer in {seconds:.0f} s, see {self.log.name}")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                raise ProgramFailed(f"it ended, see {self.log.name}")
            self.pending += part

    def sample(self):
        try:
            self.process.stdin.write(b"sample\n")
            self.process.stdin.flush()
        except OSError:
            raise ProgramFailed(f"it ended, see {self.log.name}") from None
        self.samples.append(self.read(600))

    def close(self):
        """Ends with its input; whatever does not is ended, with all it has started."""
        try:
            self.process.stdin.close()
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            pass
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    # ---- of all samples --------------------------------------------------------------------------
    def values(self, key):
        return [sample[key] for sample in self.samples if key in sample]

    def median(self, key="seconds"):
        values = self.values(key)
        return statistics.median(values) if values else None

    def best(self):
        return min(self.values("seconds"))

    def spread(self):
        """Between the quartiles, as a share of the median."""
        values = sorted(self.values("seconds"))
        if len(values) < 4:
            return (values[-1] - values[0]) / self.median()
        quarters = statistics.quantiles(values, n=4, method="inclusive")
        return (quarters[2] - quarters[0]) / self.median()


def take_turns(programs, rounds):
    """A, b, c, a, b, c, ...: every program is measured under the same weather. Those that fail are
    left out from then on; the words of why are returned by label."""
    failures = {}
    for turn in range(rounds):
        for i in range(len(programs)):
            program = programs[(turn + i) % len(programs)]
            if program.label in failures:
                continue
            time.sleep(0.03)  # threads of the one before have stopped spinning
            try:
                program.sample()
            except ProgramFailed as failure:
                failures[program.label] = str(failure)
    return failures
