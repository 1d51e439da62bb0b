"""What the numbers belong to: processor, load, versions; and the PyTorches of this machine."""

import datetime
import json
import os
import platform
import re
import shlex
import subprocess

PYTHONS = ["python3", "/usr/bin/python3"]

# Memory that PyTorch gives back is kept by malloc, and page faults vanish. A threshold alone does
# not do it: glibc refuses one above 32 MiB.
KEPT_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}

# The kernels of OpenBLAS; its own choice first. What it takes for a processor it does not know may
# be several times slower than what that processor can run, or wrong.
CORE_TYPES = [None, "Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids"]


def plain_environment(threads):
    """Without what somebody has set for PyTorch, OpenBLAS or malloc."""
    environment = {key: value for key, value in os.environ.items()
                   if not re.match("OPENBLAS_|OMP_|MKL_|MALLOC_|ATEN_|GOMP_", key)}
    for library in ("OMP", "OPENBLAS", "MKL"):
        environment[library + "_NUM_THREADS"] = str(threads)
    return environment


class Torch:
    """An interpreter with PyTorch."""

    def __init__(self, python, folder, about):
        self.python, self.peer = python, os.path.join(folder, "peer.py")
        self.version, self.blas = about["version"], about["blas"]
        self.kernels, self.capability = {}, about["capability"]

    def ask(self, word, more):
        """The answer of peer.py, or None: a kernel may be an illegal instruction."""
        done = subprocess.run([self.python, self.peer, word], stdout=subprocess.PIPE, timeout=120,
                              stderr=subprocess.DEVNULL, env={**plain_environment(1), **more})
        return json.loads(done.stdout) if done.returncode == 0 else None

    def choose_kernels(self):
        """The fastest that are right."""
        best = None
        choices = [{"OPENBLAS_CORETYPE": name} if name else {} for name in
                   (CORE_TYPES if self.blas == "openblas" else CORE_TYPES[:1])]

        def consider(choice):
            nonlocal best
            answer = self.ask("rate", choice)
            if answer and answer["error"] < 1e-5 and (not best or answer["seconds"] < best):
                best, self.kernels = answer["seconds"], choice

        for choice in choices:
            consider(choice)
        if "avx512f" in processor_flags():
            consider({**self.kernels, "ATEN_CPU_CAPABILITY": "avx512"})

    def environment(self, threads, tuned):
        return {**plain_environment(threads), **self.kernels, **(KEPT_MEMORY if tuned else {})}

    def describe(self):
        chosen = ", ".join(f"{key}={value}" for key, value in self.kernels.items())
        return f"{self.version} ({self.blas}{', ' + chosen if chosen else ''})"


def find_torches(pythons, folder):
    """One for each version, and sentences about the others."""
    found, absent = {}, []
    for python in pythons:
        try:
            done = subprocess.run([python, os.path.join(folder, "peer.py"), "versions"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120,
                                  env=plain_environment(1))
            about = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            about = {"missing": f"it does not run peer.py ({type(error).__name__})"}
        if "missing" in about:
            absent.append(f"{python}: {about['missing']}")
        else:
            found.setdefault(about["version"], Torch(python, folder, about))
    return list(found.values()), absent


# ---- the head of the table -----------------------------------------------------------------------
def clock():
    return datetime.datetime.now().strftime("%H:%M:%S")


def cores():
    return len(os.sched_getaffinity(0))


def load():
    return "{:.1f}".format(os.getloadavg()[0])


def cpu_info(key):
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith(key):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def processor_flags():
    return cpu_info("flags").split()


def processor():
    names = [cpu_info("model name") or platform.processor() or platform.machine()]
    family = cpu_info("cpu family")
    if family:
        names.append(f"family {family} model {cpu_info('model')}".replace("model model", "model"))
    names.append("AVX-512" if "avx512f" in processor_flags() else
                 "AVX2" if "avx2" in processor_flags() else "no AVX2")
    return ", ".join(names)


def first_line(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.stdout.splitlines()[0].strip() if done.stdout else "unknown"
    except OSError:
        return "not found"


def revision():
    """The last one that changed a header."""
    here = os.path.dirname(os.path.abspath(__file__))
    headers = os.path.join(here, "../../include")
    name = first_line("git", "-C", here, "log", "-1", "--format=%h", "--", headers)
    changed = first_line("git", "-C", here, "status", "--porcelain", "--", headers)
    return name + ("" if changed == "unknown" else ", with changes")


def cache_entry(folder, name):
    try:
        with open(os.path.join(folder, "CMakeCache.txt")) as cache:
            for line in cache:
                if line.startswith(name + ":"):
                    return line.split("=", 1)[1].strip()
    except OSError:
        pass
    return ""


def describe(bench, words, load_before):
    """Pairs of what and which."""
    ours = [i for i, word in enumerate(words) if word in ("--build", "--results")]
    words = [word for i, word in enumerate(words) if i not in ours and i - 1 not in ours]
    build = bench.options.build
    compiler = cache_entry(build, "CMAKE_CXX_COMPILER")
    kind = cache_entry(build, "CMAKE_BUILD_TYPE")
    flags = cache_entry(build, "CMAKE_CXX_FLAGS_" + kind.upper())
    mpi = re.search(r"Version: *(\S+)", first_line("mpiexec", "--version")) or re.search(
        r"Version: *(\S+)", subprocess.run(["mpiexec", "--version"], stdout=subprocess.PIPE,
                                           text=True).stdout)
    torches = "; ".join(torch.describe() for torch in bench.torches) or "not installed"
    return [
        ("command", " ".join(["./tests/bench/run", *map(shlex.quote, words)])),
        ("date", datetime.date.today().isoformat()),
        ("headers of", revision()),
        ("processor", f"{processor()}; {cores()} cores"),
        ("peak", f"{bench.fma_rates()[1] * 1e-9:.0f} GFLOP/s of one core, fp32, "
                 f"{bench.peak.about['version']}"),
        ("load", f"{load_before} before, {load()} after: other programs shared the cores by that "
                 "much"),
        ("compiler", f"{first_line(compiler, '--version')}; {kind}: {flags}"),
        ("MPI", f"MPICH {mpi.group(1)}" if mpi else "unknown"),
        ("PyTorch", torches + "".join(f"; {text}" for text in bench.absent)),
        ("tuned malloc", " ".join(f"{key}={value}" for key, value in KEPT_MEMORY.items())),
        ("samples", f"{bench.options.samples} of each, in turn; medians; spread is between the "
                    "quartiles"),
    ]
